"""Encodings, attentions and models under every dtype policy."""

import contextlib
import functools

import keras
import ml_dtypes
import numpy as np
import pytest
from keras import ops

from keras_lengen.conformance import models as promises
from keras_lengen.layers import (
    ENCODINGS,
    FeedForward,
    GeometricAttention,
    MultiHeadAttention,
    RandomizedPositions,
    Recipe,
)
from keras_lengen.layers.random_layer import Dropout
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.layers.positions import table as samplers
from tests.keras_lengen.models import small

POSITIONS = np.array([0, 1, 500, 997, 999, 1000], "int32")
"""Of all tokens: far apart, and so near that bfloat16 merges them."""


def layers(name, policy, attention=MultiHeadAttention, **changes):
    """A model of an encoding, by itself and in attention, and its inputs."""
    encoding = encodings.make(name, dtype=policy)
    arrays = encodings.random_inputs(encoding.stage)
    symbols = [keras.Input(x.shape[1:], dtype="float32") for x in arrays]
    positions = keras.Input(POSITIONS.shape, dtype="int32")
    outputs = {"given": encoding(*symbols, positions=positions)}
    outputs["sampled"] = encoding(*symbols)
    if encoding.stage != "embeddings":
        layer = attention(
            encodings.HEADS,
            encodings.WIDTH,
            encoding=encodings.make(name, dtype=policy),
            dtype=policy,
            **changes,
        )
        arrays += encodings.random_inputs("embeddings")
        x = keras.Input(arrays[-1].shape[1:], dtype="float32")
        symbols.append(x)
        options = {"use_causal_mask": encoding.causal_only}
        outputs["attention"] = layer(x, x, positions=positions, **options)
    rows = np.tile(POSITIONS, (encodings.BATCH, 1))
    return keras.Model([*symbols, positions], outputs), [*arrays, rows]


def model(name, policy, encoding_policy=None, **changes):
    """A small model, an encoder if it may be one, with inputs for it."""
    encoding = encodings.make(name, dtype=encoding_policy or policy)
    make = small.decoder if encoding.causal_only else small.encoder
    # Embeddings large enough for attention to tell tokens apart.
    options = {"embedding_scale": 48.0, "dtype": policy, **changes}
    inputs = {"token_ids": small.token_ids(), "positions": POSITIONS}
    return make(encoding, **options), inputs


def results(model, inputs):
    """A name, dtypes and a float32 array of each result of a model."""
    specs = keras.tree.map_structure(
        lambda array: keras.KerasTensor(array.shape, str(array.dtype)), inputs
    )
    called, symbols = model(inputs), model(specs)
    if not isinstance(called, dict):
        called, symbols = {"model": called}, {"model": symbols}
    return [
        (name, {symbol.dtype, standard_dtype(result)}, as_array(result))
        for name in called
        for symbol, result in zip(
            keras.tree.flatten(symbols[name]),
            keras.tree.flatten(called[name]),
            strict=True,
        )
    ]


def standard_dtype(tensor):
    return keras.backend.standardize_dtype(tensor.dtype)


def as_array(tensor):
    return ops.convert_to_numpy(ops.cast(tensor, "float32"))


def compute_dtype(policy):
    return keras.DTypePolicy(policy).compute_dtype


def promised_dtype(encoding, name, policy):
    bias = encodings.make(encoding).stage == "bias" and name != "attention"
    if name == "model" or bias:
        return "float32"
    return compute_dtype(policy)


def assert_near(result, exact, policy):
    """Asserts likeness relative to results, or to 1 where they are smaller.

    Measured results are off by up to 3.5 epsilons; a position rounded to
    bfloat16 would move them by a hundred.
    """
    # In float64, positions, biases, scores and logits are float32.
    tolerance = 4 * max(
        float(ml_dtypes.finfo(dtype).eps)
        for dtype in (compute_dtype(policy), "float32")
    )
    assert np.isfinite(result).all()
    np.testing.assert_allclose(result, exact, rtol=tolerance, atol=tolerance)


ONE_PRODUCT = {"use_bias": False, "num_key_value_heads": 1}
OTHER_BLOCKS = {
    **{"normalization": "pre", "rms_norm": True},
    "feedforward": Recipe(FeedForward, gated=True),
    **{"use_bias": False, "tie_embeddings": True},
    "output_size": small.VOCABULARY_SIZE,
}


@pytest.mark.product
@pytest.mark.parametrize(
    ("name", "policy", "make", "changes"),
    [
        *((name, "bfloat16", layers, {}) for name in ENCODINGS),
        ("FIRE", "float64", layers, {}),
        ("RandomizedRoPE", "mixed_float16", layers, {"chunk_size": 4}),
        ("RandomizedRoPE", "bfloat16", layers, ONE_PRODUCT),
        ("NoPE", "float16", layers, {"attention": GeometricAttention}),
        ("SinusoidalEncoding", "mixed_float16", model, {}),
        ("FIRE", "float64", model, {}),
        ("FIRE", "bfloat16", model, {"encoding_policy": "float32"}),
        ("RandomizedRoPE", "bfloat16", model, OTHER_BLOCKS),
        ("SinusoidalEncoding", "float16", model, OTHER_BLOCKS),
    ],
)
def test_values_and_dtypes(name, policy, make, changes):
    """Values are those of float32, with its weights."""
    exact, inputs = make(name, "float32", **changes)
    ours, inputs = make(name, policy, **changes)
    ours.set_weights(exact.get_weights())
    for (part, dtypes, found), (_, _, expected) in zip(
        results(ours, inputs), results(exact, inputs), strict=True
    ):
        assert_near(found, expected, policy)
        assert dtypes == {promised_dtype(name, part, policy)}, part


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
    ("name", "policy", "make"),
    [
        ("FIRE", "bfloat16", layers),
        ("SinusoidalEncoding", "float64", layers),
        ("RandomizedRoPE", "float16", model),
        ("CAPE", "mixed_bfloat16", model),
    ],
)
def test_a_global_policy_is_that_of_all_layers(name, policy, make):
    local, inputs = make(name, policy)
    expected = results(local, inputs)
    with globally(policy):
        ours, _ = make(name, None)
        ours.set_weights(local.get_weights())
        found = results(ours, inputs)
    for ours, (part, _, wanted) in zip(found, expected, strict=True):
        assert ours[1] == {promised_dtype(name, part, policy)}
        np.testing.assert_array_equal(ours[2], wanted)


def test_generated_logits_are_those_of_the_full_pass():
    policy = "float16"
    ours = small.decoder(
        encodings.make("FIRE", dtype=policy),
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
    ("name", "policy"), [("RandomizedRoPE", "bfloat16"), ("FIRE", "float16")]
)
def test_a_training_step_moves_every_weight(name, policy):
    ours, _ = model(name, policy, dropout=0.1)
    promises._check_training(ours)
    for weight in ours.trainable_weights:
        # The layer that makes the logits is float32, as they are.
        wanted = "float32" if "/head/" in weight.path else policy
        assert standard_dtype(weight) == wanted, weight.path


@pytest.mark.parametrize("variant", samplers.VARIANTS)
def test_positions_are_the_same_whatever_floatx(variant):
    drawn = []
    inputs, lengths = ops.zeros((64, 8)), ops.arange(64, dtype="int32") % 9
    for policy in ("float32", "float64", "bfloat16", "float16"):
        with globally(policy):
            sampler = samplers.make(variant)
            batches = [
                sampler(inputs, training=True),
                sampler(inputs, lengths=lengths, training=True),
                sampler(inputs, training=False),
            ]
        drawn.append([*map(as_array, keras.tree.flatten(batches))])
    for others in drawn[1:]:
        for found, expected in zip(others, drawn[0], strict=True):
            np.testing.assert_array_equal(found, expected)


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


def test_dropout_drops_the_given_share():
    inputs = np.random.default_rng(0).uniform(1, 2, (1000, 1000))
    with globally("bfloat16"):
        outputs = Dropout(0.01, seed=1)(inputs, training=True)
        assert standard_dtype(outputs) == "bfloat16"
        outputs = as_array(outputs)
    error = 5 * (0.01 * 0.99 / outputs.size) ** 0.5
    assert abs(np.mean(outputs == 0) - 0.01) < error
    # A factor of the compute dtype would be off by up to half an epsilon.
    assert abs(outputs.mean() / inputs.mean() - 1) < error / 0.99 + 2e-4


def test_sampled_tokens_are_the_same_whatever_floatx():
    ours = small.decoder(output_size=small.VOCABULARY_SIZE)
    options = {"temperature": 1.0, "top_p": 0.9, "jit_compile": False}
    prompts = small.token_ids()
    generate = functools.partial(ours.generate, prompts, 5, seed=1, **options)
    with small.eagerly():
        expected = generate()
        with globally("bfloat16"):
            np.testing.assert_array_equal(generate(), expected)
