"""What every sampler promises, tested on all that `SAMPLERS` lists.

Rows, which follow from the declared arguments, and helpers are in `table.py`.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.checks.arguments import constructor_arguments
from keras_lengen.layers import SAMPLERS, GridPositions
from tests.keras_lengen.layers import arguments
from tests.keras_lengen.layers.positions.table import (
    ALIKE,
    ROWS,
    VARIANTS,
    make,
    reset,
    row_of,
)
from tests.products import mark_slow, product

BATCH, TOKENS = 3, 8
INPUTS = np.zeros((BATCH, TOKENS), "int32")

every_variant = pytest.mark.parametrize("variant", VARIANTS)
# The default run leaves out the variants.
every_row = pytest.mark.parametrize("variant", product(VARIANTS, keep=ROWS))
DRAWING = ("RandomizedPositions", "WarpedPositions")
"""What the default run compiles by XLA: samplers unlike in what they draw."""

training_or_not = pytest.mark.parametrize(
    "training", [True, False], ids=["training", "evaluation"]
)


def draw(sampler, inputs=INPUTS, **kwargs):
    """Positions of `inputs`, as if the sampler were new."""
    reset(sampler)
    return np.asarray(sampler(inputs, **kwargs))


@pytest.mark.parametrize("cls", SAMPLERS.values())
def test_constructors_take_keywords_only(cls):
    with pytest.raises(TypeError, match="positional"):
        cls(None)


@every_variant
def test_config_rebuilds_it(variant):
    arguments.assert_config_round_trip(make(variant))


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        (name, argument)
        for name, cls in SAMPLERS.items()
        for argument in sorted(constructor_arguments(cls))
    ],
)
def test_every_argument_is_an_attribute_and_counts(name, argument):
    if argument == "seed":
        arguments.assert_is_attribute(make(name, seed=3), argument, 3)
        return

    def outcome(sampler):
        return [draw(sampler, training=training) for training in (True, False)]

    assert ROWS[name].alternatives[argument]
    for value in ROWS[name].alternatives[argument]:
        changed = make(name, **{argument: value})
        arguments.assert_is_attribute(changed, argument, value)
        assert arguments.differ(outcome(changed), outcome(make(name)))


@every_variant
@training_or_not
def test_positions_are_distinct_numbers_in_range(variant, training):
    row = row_of(variant)
    positions = draw(make(variant), training=training)
    assert positions.shape in [(TOKENS,), (BATCH, TOKENS)]
    assert positions.dtype == ("int32" if row.integers else "float32")
    assert positions.min() >= row.bottom
    assert positions.max() <= row.top
    for example in np.reshape(positions, (-1, TOKENS)):
        assert len(set(example.tolist())) == TOKENS


@pytest.mark.parametrize("name", SAMPLERS)
def test_it_knows_whether_positions_may_be_negative(name):
    lowest = min(
        draw(make(variant), training=training).min()
        for variant, (own, _) in VARIANTS.items()
        for training in (True, False)
        if own == name
    )
    assert (lowest < 0) == SAMPLERS[name].negative


@every_row
@training_or_not
@pytest.mark.parametrize(
    "lengths", product([5, [5, 8, 1]], keep=[[5, 8, 1]]), ids=str
)
def test_padding_changes_no_position(variant, training, lengths):
    sampler = make(variant)
    padded = draw(sampler, training=training, lengths=np.array(lengths))
    assert np.isfinite(padded).all()
    padded = np.broadcast_to(padded, INPUTS.shape)
    for example, length in enumerate(np.broadcast_to(lengths, BATCH)):
        alone = draw(sampler, INPUTS[:, :length], training=training)
        alone = np.broadcast_to(alone, (BATCH, length))
        np.testing.assert_array_equal(padded[example, :length], alone[example])
        # Ranks of real tokens are those of a sequence without padding.
        assert (padded[example, length:] >= alone[example].max()).all()


@every_variant
def test_two_draws_differ_where_it_draws(variant):
    sampler = make(variant)
    first, second = (np.asarray(sampler(INPUTS, training=True)) for _ in "12")
    assert np.array_equal(first, second) != sampler.draws


@every_variant
def test_one_seed_is_one_sequence_of_draws(variant):
    first, second = (
        [np.asarray(sampler(INPUTS, training=True)) for _ in "12"]
        for sampler in (make(variant), make(variant))
    )
    np.testing.assert_array_equal(first, second)


def compiled(sampler, lengths, inputs=INPUTS, *, jit_compile, training):
    @tf.function(jit_compile=jit_compile)
    def call(inputs, lengths):
        return sampler(inputs, lengths=lengths, training=training)

    reset(sampler)
    return np.asarray(call(tf.constant(inputs), tf.constant(lengths)))


@every_row
@training_or_not
def test_graph_is_eager(variant, training):
    sampler = make(variant)
    np.testing.assert_allclose(
        compiled(sampler, [5, 8, 1], jit_compile=False, training=training),
        draw(sampler, lengths=np.array([5, 8, 1]), training=training),
        # Graphs may add floats in another order.
        rtol=1e-6,
        atol=1e-6,
    )


@pytest.mark.parametrize(
    "variant", product(mark_slow(VARIANTS, ALIKE), keep=DRAWING)
)
@training_or_not
def test_padding_changes_no_position_under_xla(variant, training):
    # XLA has its own random numbers, so that eager is no comparison.
    sampler = make(variant)
    mode = {"jit_compile": True, "training": training}
    padded = compiled(sampler, [5, 8, 1], **mode)
    alone = compiled(sampler, [5, 5, 5], INPUTS[:, :5], **mode)
    np.testing.assert_array_equal(
        np.broadcast_to(padded, INPUTS.shape)[0, :5],
        np.broadcast_to(alone, (BATCH, 5))[0],
    )


@every_row
@pytest.mark.parametrize("tokens", [TOKENS, None])
def test_a_functional_model_takes_it(variant, tokens):
    sampler = make(variant)
    inputs = keras.Input((tokens,), dtype="int32")
    model = keras.Model(inputs, sampler(inputs))
    reset(sampler)
    positions = model(INPUTS, training=True)
    np.testing.assert_array_equal(positions, draw(sampler, training=True))
    static = model.output.shape
    assert len(static) == len(positions.shape)
    for size, known in zip(positions.shape, static, strict=True):
        assert known in (None, size)


@every_variant
@pytest.mark.parametrize(
    "inputs",
    [np.zeros((BATCH, TOKENS, 4), "float16"), np.ones((BATCH, TOKENS), bool)],
    ids=["float16", "bool"],
)
def test_only_the_shape_of_the_inputs_counts(variant, inputs):
    sampler = make(variant, dtype="mixed_bfloat16")
    np.testing.assert_array_equal(draw(sampler, inputs), draw(sampler))


@every_variant
def test_masked_inputs_are_accepted_and_the_mask_ends_there(variant):
    tokens = keras.layers.Embedding(2, 4, mask_zero=True)(INPUTS)
    positions = make(variant)(tokens)
    assert getattr(positions, "_keras_mask", None) is None


@pytest.mark.parametrize(
    "variant", [*VARIANTS, "AugmentedPositions-max_local_shift=0.9"]
)
def test_it_knows_whether_positions_keep_the_order(variant):
    if variant not in VARIANTS:
        sampler = make("AugmentedPositions", max_local_shift=0.9)
    else:
        sampler = make(variant)
    kept = all(
        (np.diff(sampler(INPUTS, training=True)) >= 0).all() for _ in range(30)
    )
    assert sampler.keeps_order == kept


@pytest.mark.parametrize(("ordered", "kept"), [(True, True), (False, False)])
def test_a_grid_keeps_the_order_if_its_rows_do(ordered, kept):
    row = make("RandomizedPositions", ordered=ordered)
    assert GridPositions(width=3, row=row).keeps_order == kept
