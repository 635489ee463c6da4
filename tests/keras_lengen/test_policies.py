"""Encodings, attentions and models under every dtype policy."""

import contextlib
import functools

import keras
import ml_dtypes
import numpy as np
import pytest
from keras import ops

from keras_lengen.layers import (
    ENCODINGS,
    AxialEncoding,
    GeometricAttention,
    GridPositions,
    MultiHeadAttention,
    RandomizedPositions,
)
from keras_lengen.layers.drawing import Dropout
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.layers.positions import table as samplers
from tests.keras_lengen.models import small

PURE = ("float64", "bfloat16", "float16")
POLICIES = (*PURE, "mixed_bfloat16", "mixed_float16")
"""All policies but float32, which they are compared with."""

POSITIONS = np.array([0, 1, 500, 997, 999, 1000], "int32")
"""Of all tokens: far apart, and so near that bfloat16 merges them."""


def axial(name, **kwargs):
    """An encoding of rows and one of columns, of one class."""
    row, column = (encodings.make(name, **kwargs) for _ in range(2))
    sampler = GridPositions(width=3)
    return AxialEncoding(row=row, column=column, sampler=sampler, **kwargs)


CASES = {
    **{name: functools.partial(encodings.make, name) for name in ENCODINGS},
    **{
        f"AxialEncoding of {name}": functools.partial(axial, name)
        for name in ("SinusoidalEncoding", "RoPE", "RelativeEncoding")
    },
    "GeometricAttention": functools.partial(encodings.make, "NoPE"),
}
"""Functions that make the encoding of every case, given its `dtype`."""


def attention_class(case):
    if case == "GeometricAttention":
        return GeometricAttention
    return MultiHeadAttention


def layers(case, policy, **changes):
    """A functional model of an encoding, with inputs for it.

    The encoding is in it by itself and, where it has a place there, in
    attention, whose arguments `changes` are.
    """
    encoding = CASES[case](dtype=policy)
    arrays = encodings.random_inputs(encoding.stage)
    symbols = [keras.Input(x.shape[1:], dtype="float32") for x in arrays]
    positions = keras.Input(POSITIONS.shape, dtype="int32")
    given = (positions, positions) if encoding.takes_pairs else positions
    outputs = {
        "given": encoding(*symbols, positions=given),
        "sampled": encoding(*symbols),
    }
    if encoding.stage != "embeddings":
        attention = attention_class(case)(
            encodings.HEADS,
            encodings.WIDTH,
            encoding=CASES[case](dtype=policy),
            dtype=policy,
            **changes,
        )
        arrays += encodings.random_inputs("embeddings")
        x = keras.Input(arrays[-1].shape[1:], dtype="float32")
        symbols.append(x)
        outputs["attention"] = attention(
            x, x, positions=given, use_causal_mask=encoding.causal_only
        )
    rows = np.tile(POSITIONS, (encodings.BATCH, 1))
    return keras.Model([*symbols, positions], outputs), [*arrays, rows]


def model(case, policy, **changes):
    """A small model, an encoder if it may be one, with inputs for it."""
    encoding = CASES[case](dtype=policy)
    make = small.decoder if encoding.causal_only else small.encoder
    positions = (POSITIONS,) * 2 if encoding.takes_pairs else POSITIONS
    arguments = {
        "encoding": encoding,
        "attention": attention_class(case),
        # Embeddings large enough for attention to tell tokens apart.
        "embedding_scale": 48.0,
        "dtype": policy,
        **changes,
    }
    inputs = {"token_ids": small.token_ids(), "positions": positions}
    return make(**arguments), inputs


def two_sequences(case, policy):
    model = small.make(
        "encoder_decoder",
        case,
        embedding_scale=48.0,
        dtype=policy,
        encoding_changes={"dtype": policy},
    )
    return model, small.inputs(model, small.token_ids())


def foreign(case, policy):
    """A model whose encoding has another policy."""
    return model(case, policy, encoding=CASES[case](dtype="float32"))


MAKERS = {
    "layers": layers,
    # One product for queries, keys and values.
    "grouped": functools.partial(layers, use_bias=False, num_key_value_heads=1),
    "chunks": functools.partial(layers, chunk_size=4),
    "model": model,
    "other blocks": functools.partial(
        model,
        **{"normalization": "pre", "rms_norm": True, "use_bias": False},
        gated_feedforward=True,
        tie_embeddings=True,
        output_size=small.VOCABULARY_SIZE,
    ),
    "two sequences": two_sequences,
    "foreign": foreign,
}


def results(model, inputs):
    """The results of a model by name: dtypes, and float32 arrays."""
    called, symbols = model(inputs), getattr(model, "output", None)
    if symbols is None:
        specs = keras.tree.map_structure(
            lambda array: keras.KerasTensor(array.shape, str(array.dtype)),
            inputs,
        )
        symbols, called = {"model": model(specs)}, {"model": called}
    return {
        f"{name} {index}": (
            {symbol.dtype, standard_dtype(result)},
            as_array(result),
        )
        for name in called
        for index, (symbol, result) in enumerate(
            zip(
                keras.tree.flatten(symbols[name]),
                keras.tree.flatten(called[name]),
                strict=True,
            )
        )
    }


def standard_dtype(tensor):
    return keras.backend.standardize_dtype(tensor.dtype)


def as_array(tensor):
    return ops.convert_to_numpy(ops.cast(tensor, "float32"))


def compute_dtype(policy):
    return keras.DTypePolicy(policy).compute_dtype


def promised_dtype(case, name, policy):
    if name.startswith("model"):
        return "float32"
    if name.startswith("attention"):
        return compute_dtype(policy)
    bias = CASES[case]().stage == "bias"
    return "float32" if bias else compute_dtype(policy)


def assert_near(result, exact, policy):
    """Asserts likeness relative to results, or to 1 where they are smaller.

    One rounding moves a number by half an epsilon at most. Measured results
    are off by up to 2.6 epsilons, and by 3.5 where `p` of PowerKERPLE, itself
    half an epsilon off, is multiplied by the logarithm of the distance 1000.
    A position rounded to bfloat16 would move them by a hundred.
    """
    # In float64, positions, biases, scores and logits are float32.
    tolerance = 4 * max(
        float(ml_dtypes.finfo(dtype).eps)
        for dtype in (compute_dtype(policy), "float32")
    )
    assert np.isfinite(result).all()
    np.testing.assert_allclose(result, exact, rtol=tolerance, atol=tolerance)


@pytest.mark.product
@pytest.mark.parametrize(
    ("case", "policy", "maker"),
    [
        *((case, "bfloat16", "layers") for case in CASES),
        *(("FIRE", policy, "layers") for policy in ("float64", "float16")),
        ("RandomizedRoPE", "mixed_bfloat16", "layers"),
        ("FIRE", "float64", "grouped"),
        ("RandomizedRoPE", "bfloat16", "grouped"),
        ("RandomizedRoPE", "mixed_float16", "chunks"),
        ("SinusoidalEncoding", "mixed_float16", "model"),
        ("FIRE", "float64", "model"),
        ("GeometricAttention", "bfloat16", "model"),
        ("RandomizedRoPE", "bfloat16", "other blocks"),
        ("SinusoidalEncoding", "float16", "other blocks"),
        ("RandomizedRoPE", "float16", "two sequences"),
        ("FIRE", "bfloat16", "foreign"),
    ],
)
def test_values_and_dtypes(case, policy, maker):
    """Values are those of float32, with its weights."""
    make = functools.partial(MAKERS[maker], case)
    exact, inputs = make("float32")
    expected = results(exact, inputs)
    ours, inputs = make(policy)
    ours.set_weights(exact.get_weights())
    found = results(ours, inputs)
    assert set(found) == set(expected)
    for name, (dtypes, result) in found.items():
        assert_near(result, expected[name][1], policy)
        assert dtypes == {promised_dtype(case, name, policy)}, name


@contextlib.contextmanager
def globally(policy):
    """Makes a policy the global one, and the dtype of a pure one floatx."""
    before = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    if not policy.startswith("mixed_"):
        keras.config.set_floatx(policy)
    try:
        yield
    finally:
        keras.config.set_floatx(before[0])
        keras.config.set_dtype_policy(before[1])


@pytest.mark.parametrize(
    ("case", "policy", "make"),
    [
        ("FIRE", "bfloat16", layers),
        ("SinusoidalEncoding", "float64", layers),
        ("RandomizedRoPE", "float16", model),
        ("CAPE", "mixed_bfloat16", model),
    ],
)
def test_a_global_policy_is_that_of_all_layers(case, policy, make):
    local, inputs = make(case, policy)
    expected = results(local, inputs)
    with globally(policy):
        ours, _ = make(case, None)
        ours.set_weights(local.get_weights())
        found = results(ours, inputs)
    assert set(found) == set(expected)
    for name, (dtypes, result) in found.items():
        assert dtypes == {promised_dtype(case, name, policy)}
        np.testing.assert_array_equal(result, expected[name][1])


@pytest.mark.parametrize("policy", POLICIES)
def test_features_are_of_the_compute_dtype(policy):
    ((dtypes, _),) = results(*model("RoPE", policy, output_size=None)).values()
    assert dtypes == {compute_dtype(policy)}


def test_generated_logits_are_those_of_the_full_pass():
    case, policy = "FIRE", "float16"
    ours = small.decoder(
        CASES[case](dtype=policy),
        output_size=small.VOCABULARY_SIZE,
        embedding_scale=48.0,
        dtype=policy,
    )
    prompts = small.token_ids()
    with globally(policy), small.eagerly():
        tokens, logits = ours.generate(
            prompts, 4, return_logits=True, jit_compile=False
        )
    assert standard_dtype(logits) == "float32"
    full = ours(np.concatenate([prompts, tokens], axis=1))
    full = ops.convert_to_numpy(full)[:, prompts.shape[1] - 1 : -1]
    assert_near(logits, full, policy)


@pytest.mark.parametrize(
    ("case", "policy"),
    [
        ("SinusoidalEncoding", "bfloat16"),
        ("FIRE", "float16"),
        ("RandomizedRoPE", "bfloat16"),
    ],
)
def test_a_training_step_has_finite_gradients(case, policy):
    ours, inputs = model(case, policy, dropout=0.1)
    rows = keras.tree.map_structure(
        lambda axis: np.tile(axis, (encodings.BATCH, 1)), inputs["positions"]
    )
    before = [as_array(weight) for weight in ours.weights]
    ours.compile(
        optimizer=keras.optimizers.SGD(0.1),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        run_eagerly=True,
    )
    labels = inputs["token_ids"] % small.OUTPUT_SIZE
    ours.train_on_batch({**inputs, "positions": rows}, labels)
    for weight in ours.trainable_weights:
        # The layer that makes the logits is float32, as they are.
        wanted = "float32" if "/head/" in weight.path else policy
        assert standard_dtype(weight) == wanted, weight.path
        assert np.isfinite(as_array(weight)).all(), weight.path
    after = [as_array(weight) for weight in ours.weights]
    assert not all(map(np.array_equal, before, after))
    assert np.isfinite(as_array(ours(inputs))).all()


@pytest.mark.parametrize("variant", samplers.VARIANTS)
def test_positions_are_the_same_whatever_floatx(variant):
    drawn = {}
    for policy in ("float32", *PURE):
        with globally(policy):
            sampler = samplers.make(variant)
            inputs = ops.zeros((64, 8))
            lengths = ops.arange(64, dtype="int32") % 9
            drawn[policy] = (
                sampler(inputs, training=True),
                sampler(inputs, lengths=lengths, training=True),
                sampler(inputs, training=False),
            )
        for found, expected in zip(
            drawn[policy], drawn["float32"], strict=True
        ):
            # With a floatx of bfloat16, Keras on JAX takes numbers without a
            # dtype for the widest floats.
            np.testing.assert_allclose(
                np.asarray(found), np.asarray(expected), rtol=1e-6
            )


def test_the_mean_of_randomized_positions_is_half_the_range():
    # Of the largest of few random numbers many are equal, which prefers the
    # first ones: one token shows it best.
    sampler = samplers.make(
        "RandomizedPositions", max_position=2048, resample="example"
    )
    with globally("bfloat16"):
        draws = np.asarray(sampler(ops.zeros((4000, 1)), training=True))
    # Five standard deviations of the mean.
    error = 5 * 2048 / 12**0.5 / 4000**0.5
    assert abs(draws.mean() - 2047 / 2) < error


def test_tokens_of_long_sequences_are_counted_whatever_floatx():
    # Keras counts in 16 bits there where no dtype is given.
    tokens = 40_000
    with globally("float16"):
        sampler = RandomizedPositions(max_position=tokens)
        positions = sampler(
            ops.zeros((1, tokens)), lengths=np.array([35_000]), training=True
        )
    # Padding stands at the last position, where a token may stand, too.
    assert np.sum(np.asarray(positions) < tokens - 1) in (34_999, 35_000)


@pytest.mark.parametrize(
    ("policy", "rate"), [("bfloat16", 0.01), ("float16", 0.3), ("float64", 0.3)]
)
def test_dropout_drops_the_given_share(policy, rate):
    inputs = np.random.default_rng(0).uniform(1, 2, (1000, 1000))
    with globally(policy):
        dropout = Dropout(rate, seed=1)
        outputs = dropout(inputs, training=True)
        assert standard_dtype(outputs) == compute_dtype(policy)
        outputs = as_array(outputs)
    error = 5 * (rate * (1 - rate) / outputs.size) ** 0.5
    assert abs(np.mean(outputs == 0) - rate) < error
    # A factor of the compute dtype would be off by up to half an epsilon.
    assert abs(outputs.mean() / inputs.mean() - 1) < error / (1 - rate) + 2e-4


def test_sampled_tokens_are_the_same_whatever_floatx():
    ours = small.decoder(
        encodings.make("RoPE"), output_size=small.VOCABULARY_SIZE
    )
    arguments = {"temperature": 1.0, "top_p": 0.9, "seed": 1}
    generate = functools.partial(
        ours.generate, small.token_ids(), 5, jit_compile=False, **arguments
    )
    with small.eagerly():
        expected = generate()
        with globally("bfloat16"):
            np.testing.assert_array_equal(generate(), expected)
