"""What every encoding promises, tested on all that `ENCODINGS` lists.

Rows, which follow from the declared arguments, and helpers are in `table.py`.
"""

import functools
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_lengen.checks.arguments import constructor_arguments
from keras_lengen.layers import ENCODINGS, RandomizedPositions
from tests.keras_lengen.layers import arguments
from tests.keras_lengen.layers.encodings.table import (
    BATCH,
    FAMILIES,
    LONGEST,
    ROWS,
    TOKENS,
    VARIANTS,
    at_stage,
    encode,
    has_free_sampler,
    in_families,
    make,
    make_built,
    pick,
    random_inputs,
    ranks,
    row_of,
    select,
)
from tests.keras_lengen.layers.positions.table import reset
from tests.products import product

SPREAD = np.array([1, 4, 5, 11, 30, 47])
"""Positions of `TOKENS` tokens."""

every_variant = pytest.mark.parametrize("variant", VARIANTS)
at_explicit_positions = pytest.mark.parametrize(
    "variant", product(VARIANTS, keep=has_free_sampler)
)
one_of_each_kind = pytest.mark.parametrize(
    "variant", product(VARIANTS, keep=in_families)
)
every_variant_causal_or_not = pytest.mark.parametrize(
    ("causal", "variant"),
    product(
        itertools.product([False, True], VARIANTS),
        keep=lambda causal, variant: in_families(variant),
    ),
)


@pytest.mark.parametrize("cls", ENCODINGS.values())
def test_constructors_take_keywords_only(cls):
    with pytest.raises(TypeError, match="positional"):
        cls(None)


@every_variant
def test_config_rebuilds_it(variant):
    arguments.assert_config_round_trip(make(variant))
    arguments.assert_config_round_trip(make_built(variant))


@pytest.mark.parametrize(
    ("name", "argument"),
    product(
        [
            (name, argument)
            for name, cls in ENCODINGS.items()
            for argument in sorted(constructor_arguments(cls))
        ],
        keep=in_families,
    ),
)
def test_every_argument_is_an_attribute_and_counts(name, argument):
    row = ROWS[name]
    if argument == "seed":
        arguments.assert_is_attribute(make(name, seed=3), argument, 3)
        return
    if argument in row.refused:
        with pytest.raises(ValueError, match=argument):
            make(name, **{argument: RandomizedPositions(max_position=64)})
        return

    for value in row.alternatives[argument]:
        changed = make(name, **{argument: value})
        arguments.assert_is_attribute(changed, argument, value)
        effect = arguments.differ(outcome(changed), unchanged_outcome(name))
        assert effect == (argument not in row.idle)


def outcome(encoding):
    keras.utils.set_random_seed(0)
    inputs = random_inputs(encoding.stage)
    outputs = [
        encoding(*inputs),
        encoding(*inputs, positions=SPREAD),
        encoding(*inputs, training=True),
    ]
    if encoding.uses_length:
        outputs.append(encoding(*inputs, length=1000))
    return outputs, [weight.shape for weight in encoding.weights]


@functools.cache
def unchanged_outcome(name):
    return outcome(make(name))


@pytest.mark.parametrize(
    "variant",
    product(
        [
            variant
            for variant in select(counts_tokens=False)
            if not ranks(variant)
        ],
        keep=has_free_sampler,
    ),
)
def test_result_at_positions_is_rows_of_the_ordinal_result(variant):
    encoding = make_built(variant)
    inputs = random_inputs(encoding.stage, tokens=12)
    ordinal = encode(encoding, inputs, np.arange(12))
    tokens = [1, 4, 5, 6, 9, 11]
    result = encode(encoding, [x[:, tokens] for x in inputs], tokens)
    np.testing.assert_allclose(
        result, pick(encoding, ordinal, tokens), atol=1e-5
    )


@pytest.mark.parametrize(
    "variant", product(select(uses_positions=True), keep=has_free_sampler)
)
def test_positions_by_rank_make_equal_steps(variant):
    """Equally many tokens apart is equally far apart, or it is not."""
    encoding = make_built(variant)
    inputs = random_inputs(encoding.stage)
    same = [np.repeat(x[:, :1], TOKENS, axis=1) for x in inputs]
    result = encode(encoding, same, SPREAD)
    steps = np.allclose(
        pick(encoding, result, slice(1, None)),
        pick(encoding, result, slice(-1)),
        atol=1e-3,
    )
    assert steps == ranks(variant)


@at_explicit_positions
def test_only_differences_of_positions_matter_or_all_of_them(variant):
    encoding = make_built(variant)
    inputs = random_inputs(encoding.stage)
    near = encode(encoding, inputs, SPREAD)
    if not row_of(variant).shifts:
        moved = encode(encoding, inputs, SPREAD + 1000)
        assert not np.allclose(moved, near, atol=1e-3)
        return
    # As far as positions may go: float32 would round angles by radians.
    for start in (1000, 2**18, 2**22, 2**24 - SPREAD[-1]):
        far = encode(encoding, inputs, SPREAD + start)
        np.testing.assert_allclose(far, near, rtol=1e-5, atol=1e-4)


@every_variant_causal_or_not
def test_later_tokens_change_nothing_for_earlier_ones(variant, causal):
    encoding = make_built(variant)
    inputs = random_inputs(encoding.stage)
    result = encode(encoding, inputs, SPREAD, causal=causal)
    short = encode(
        encoding, [x[:, :4] for x in inputs], SPREAD[:4], causal=causal
    )
    np.testing.assert_allclose(
        short, pick(encoding, result, slice(4)), atol=1e-5
    )


@every_variant_causal_or_not
def test_each_example_has_its_own_positions(variant, causal):
    encoding = make_built(variant)
    inputs = [
        np.repeat(x[:1], BATCH, axis=0) for x in random_inputs(encoding.stage)
    ]
    positions = np.stack([SPREAD, 3 * SPREAD])
    result = encode(encoding, inputs, positions, causal=causal)
    for example, alone in zip(result, positions, strict=True):
        np.testing.assert_allclose(
            example,
            encode(encoding, inputs, alone, causal=causal)[0],
            atol=1e-4,
        )
    differ = not np.allclose(result[0], result[1], atol=1e-3)
    assert differ == row_of(variant).uses_positions


@one_of_each_kind
def test_one_token_at_a_time_is_the_full_pass(variant):
    encoding = make_built(variant)
    inputs = random_inputs(encoding.stage)
    full = np.asarray(encode(encoding, inputs, SPREAD, causal=True))
    for token in range(TOKENS):
        step = encode(
            encoding,
            inputs,
            SPREAD,
            queries=slice(token, token + 1),
            keys=slice(token + 1),
            causal=True,
        )
        if encoding.stage == "embeddings":
            expected = full[:, token : token + 1]
        else:
            expected = full[:, :, token : token + 1, : token + 1]
        np.testing.assert_allclose(step, expected, atol=1e-5)


def outputs_of(encoding, inputs, **kwargs):
    return keras.tree.flatten(encoding(*inputs, **kwargs))


@every_variant
def test_start_index_numbers_from_there(variant):
    encoding = make(variant)
    inputs = random_inputs(encoding.stage, tokens=4)
    if encoding.sampler.draws:
        with pytest.raises(ValueError, match=r"start_index=5.*`positions`"):
            encoding(*inputs, start_index=5)
        return
    shifted = outputs_of(encoding, inputs, start_index=5)
    expected = outputs_of(encoding, inputs, positions=np.arange(5, 9))
    for output, wanted in zip(shifted, expected, strict=True):
        np.testing.assert_allclose(output, wanted)


@at_explicit_positions
def test_the_layer_applies_its_stage_at_explicit_positions(variant):
    encoding = make_built(variant)
    inputs = [ops.convert_to_tensor(x) for x in random_inputs(encoding.stage)]
    positions = ops.convert_to_tensor(SPREAD)
    if encoding.stage == "embeddings":
        expected = encoding.add_to_embeddings(*inputs, positions)
    elif encoding.stage == "bias":
        expected = encoding.attention_bias(*inputs, positions, positions)
    else:
        expected = encoding.rotate(*inputs, positions, positions)
    outputs = outputs_of(encoding, inputs, positions=SPREAD)
    for output, wanted in zip(
        outputs, keras.tree.flatten(expected), strict=True
    ):
        np.testing.assert_array_equal(output, wanted)


@pytest.mark.parametrize(
    "variant", product(select(uses_positions=True), keep=has_free_sampler)
)
def test_it_keeps_telling_large_positions_apart(variant):
    encoding = make_built(variant)
    inputs = random_inputs(encoding.stage)
    top = row_of(variant).top
    positions = np.array([top - 9, top - 7, top - 5, top - 3, top - 2, top])
    last = np.asarray(encode(encoding, inputs, positions))
    assert np.isfinite(last).all()
    positions[-1] = top - 1
    other = np.asarray(encode(encoding, inputs, positions))
    assert not np.allclose(last, other, atol=1e-3)


@at_explicit_positions
def test_positions_past_training_are_defined_or_show_that_they_are_not(variant):
    encoding = make_built(variant)
    inputs = random_inputs(encoding.stage)
    past = 100 * LONGEST + SPREAD
    try:
        defined = np.isfinite(encode(encoding, inputs, past)).all()
    except (ValueError, tf.errors.InvalidArgumentError):
        defined = False
    assert defined == encoding.defined_past_training


@pytest.mark.parametrize(
    "variant",
    [variant for variant in VARIANTS if row_of(variant).longest is not None],
)
def test_a_sequence_too_long_raises(variant):
    encoding = make(variant)
    longest = row_of(variant).longest
    encoding(*random_inputs(encoding.stage, tokens=longest))
    with pytest.raises(ValueError, match=rf"\b{longest}\b.*max_position"):
        encoding(*random_inputs(encoding.stage, tokens=longest + 1))


@pytest.mark.parametrize(
    ("variant", "jit_compile"),
    product(
        [
            *((variant, True) for variant in VARIANTS),
            # XLA compiles the graph, which few need to be tested for again.
            *((variant, False) for variant in FAMILIES),
        ],
        keep=[("RandomizedRoPE", True), ("FIRE", True)],
    ),
)
def test_compiled_is_eager_and_gradients_are_finite(variant, jit_compile):
    encoding = make_built(variant)
    inputs = [
        tf.constant(x) for x in random_inputs(encoding.stage, tokens=TOKENS)
    ]
    weights = [weight.value for weight in encoding.trainable_weights]

    def result_and_gradients(positions, *inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            result = encode(encoding, inputs, positions)
            # Its slope magnifies no rounding, however large the result.
            loss = tf.reduce_sum(tf.asinh(result))
        return result, tape.gradient(loss, [*inputs, *weights])

    eager = result_and_gradients(tf.constant(SPREAD), *inputs)
    compiled = tf.function(result_and_gradients, jit_compile=jit_compile)(
        tf.constant(SPREAD), *inputs
    )
    for one, other in zip(
        tf.nest.flatten(eager), tf.nest.flatten(compiled), strict=True
    ):
        one, other = tf.convert_to_tensor(one), tf.convert_to_tensor(other)
        assert np.isfinite(one).all()
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-4)


@one_of_each_kind
def test_half_precision_is_near_float32_at_large_positions(variant):
    encoding = make_built(variant)
    half_encoding = make_built(variant, dtype="mixed_bfloat16")
    half_encoding.set_weights(encoding.get_weights())
    positions = np.linspace(0, row_of(variant).top, TOKENS).astype("int32")
    halves = [ops.cast(x, "bfloat16") for x in random_inputs(encoding.stage)]
    for half, exact in zip(
        outputs_of(half_encoding, halves, positions=positions),
        outputs_of(encoding, halves, positions=positions),
        strict=True,
    ):
        assert keras.backend.standardize_dtype(exact.dtype) == "float32"
        wanted = "float32" if encoding.stage == "bias" else "bfloat16"
        assert keras.backend.standardize_dtype(half.dtype) == wanted
        # Some roundings to the 8 bits of a bfloat16 number.
        np.testing.assert_allclose(
            ops.cast(half, "float32"), exact, rtol=0.02, atol=0.02
        )


class Caller(keras.layers.Layer):
    """Calls the stages from a layer with a policy of its own."""

    def __init__(self, encoding, positions, **kwargs):
        super().__init__(**kwargs)
        self.encoding = encoding
        self.positions = positions

    def call(self, *inputs):
        return encode(self.encoding, inputs, self.positions)


@one_of_each_kind
@pytest.mark.parametrize(
    "policy",
    product(["mixed_bfloat16", "mixed_float16"], keep=["mixed_bfloat16"]),
)
def test_weights_stay_float32_in_a_layer_of_half_precision(variant, policy):
    encoding = make_built(variant, dtype=policy)
    assert {weight.dtype for weight in encoding.weights} <= {"float32"}
    halves = [
        ops.cast(x, policy.removeprefix("mixed_"))
        for x in random_inputs(encoding.stage)
    ]
    result = Caller(encoding, SPREAD, dtype=policy)(*halves)
    np.testing.assert_array_equal(
        ops.cast(result, "float32"),
        ops.cast(encode(encoding, halves, SPREAD), "float32"),
    )


@pytest.mark.parametrize("name", product(ROWS, keep=in_families))
@pytest.mark.parametrize("tokens", [TOKENS, None])
def test_a_functional_model_takes_it(name, tokens):
    encoding = make(name)
    inputs = random_inputs(encoding.stage)
    symbols = [keras.Input((tokens, *x.shape[2:])) for x in inputs]
    positions = keras.Input((tokens,), dtype="int32")
    model = keras.Model(
        [*symbols, positions],
        keras.tree.flatten(
            [
                encoding(*symbols, positions=positions),
                encoding(*symbols),
            ]
        ),
    )
    batch = np.tile(SPREAD, (BATCH, 1))
    outputs = model([*inputs, batch])
    expected = outputs_of(encoding, inputs, positions=batch)
    for output, wanted in zip(outputs, expected, strict=False):
        np.testing.assert_allclose(output, wanted, atol=1e-5)
    for output, symbol in zip(outputs, model.outputs, strict=True):
        assert len(output.shape) == len(symbol.shape)
        for size, static in zip(output.shape, symbol.shape, strict=True):
            assert static in (None, size)


@pytest.mark.parametrize("variant", at_stage("embeddings"))
def test_masked_tokens_are_not_numbered(variant):
    encoding = make_built(variant)
    (inputs,) = random_inputs("embeddings")
    mask = np.array([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]], "bool")
    reset(encoding.sampler)
    padded = encoding(inputs, mask=mask)
    for example, tokens in enumerate([slice(2, 6), slice(4)]):
        reset(encoding.sampler)
        alone = encoding(inputs[:, tokens])
        np.testing.assert_allclose(
            padded[example, tokens], alone[example], atol=1e-6
        )
