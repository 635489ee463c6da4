"""Sparse attention weights."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import (
    ALiBi,
    ForgettingAttention,
    GeometricAttention,
    HardALiBi,
    MultiHeadAttention,
    RoPE,
    StickBreakingAttention,
)
from keras_lengen.layers.attention.entmax import entmax
from tests.keras_lengen.layers.attention.test_chunks import (
    assert_chunks_change_nothing,
)
from tests.keras_lengen.models.small import (
    assert_generation_is_the_full_pass,
    decoder,
    with_random_weights,
)

RANDOM = np.random.default_rng(5)
SINKS = np.array([-3, 0.3, 1.0]).reshape(3, 1, 1)
STATES = RANDOM.normal(size=(2, 7, 12)).astype("float32")


def bisect(scores):
    """The weights, float64: the threshold by bisection."""
    scores = np.float64(scores) / 2
    scores = scores - scores.max(axis=-1, keepdims=True)
    high = np.zeros((*scores.shape[:-1], 1))
    low = high - 1
    for _ in range(60):
        middle = (low + high) / 2
        roots = np.maximum(scores - middle, 0)
        below = (roots**2).sum(axis=-1, keepdims=True) > 1
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.maximum(scores - high, 0) ** 2


def spread(kind, keys):
    """Scores `(2, 1, 3, keys)`, with which searches take long or are wrong."""
    indices = np.arange(1, keys + 1)
    scores = {
        "equal": np.zeros(keys),
        "alike": RANDOM.normal(size=(2, 1, 3, keys)) * 0.01,
        "usual": RANDOM.normal(size=(2, 1, 3, keys)),
        "far": RANDOM.normal(size=(2, 1, 3, keys)) * 30 + 1000,
        "one and a crowd": np.where(indices == 1, 0, -1.998),
        "crowds": -2 + 2 * 0.5 ** np.floor(np.log2(indices)),
        "roots": -2 + 2 / np.sqrt(indices),
        "hidden": np.where(indices % 2, RANDOM.normal(size=keys), -1e30),
        "all hidden": np.full(keys, -1e30),
    }[kind]
    return np.broadcast_to(scores, (2, 1, 3, keys)).astype("float32")


@pytest.mark.parametrize("keys", [2, 3, 100, 65536])
@pytest.mark.parametrize(
    "kind",
    [
        *("equal", "alike", "usual", "far", "one and a crowd", "crowds"),
        *("roots", "hidden", "all hidden"),
    ],
)
def test_weights_are_those_of_a_bisection(kind, keys):
    scores = spread(kind, keys)
    weights = np.asarray(entmax(tf.constant(scores)))
    expected = bisect(scores)
    np.testing.assert_allclose(weights, expected, rtol=2e-4, atol=5e-7)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
    if kind == "far":
        assert (weights == 0).mean() > 0.3


def test_two_scores():
    """(a + d) ** 2 + (a - d) ** 2 = 1 for scores 4 * d apart."""
    d = 0.3
    a = np.sqrt(1 / 2 - d**2)
    weights = entmax(tf.constant([[[[1 + 4 * d, 1.0]]]]))
    np.testing.assert_allclose(
        weights[0, 0, 0], [(a + d) ** 2, (a - d) ** 2], rtol=1e-6
    )


@pytest.mark.parametrize("use_sinks", [True, False])
@pytest.mark.parametrize("use_entmax", [True, False])
@pytest.mark.parametrize("shape", [(0, 7, 12), (2, 0, 12)])
def test_inputs_may_be_empty(shape, use_entmax, use_sinks):
    layer = MultiHeadAttention(3, 4, use_entmax=use_entmax, use_sinks=use_sinks)
    states = tf.zeros(shape)
    assert layer(states, states).shape == shape


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_are_those_of_a_bisection(compiled):
    """Of every score, by central differences."""
    scores = RANDOM.normal(size=(1, 1, 4, 9)) * 2
    factors = RANDOM.normal(size=scores.shape)

    @tf.function(jit_compile=compiled)
    def differentiate(scores):
        with tf.GradientTape() as tape:
            tape.watch(scores)
            loss = tf.reduce_sum(entmax(scores) * factors.astype("float32"))
        return tape.gradient(loss, scores)

    found = np.asarray(differentiate(tf.constant(scores.astype("float32"))))
    for index in np.ndindex(scores.shape):
        step = np.zeros(scores.shape)
        step[index] = 1e-5
        losses = [
            (bisect(scores + sign * step) * factors).sum() for sign in (1, -1)
        ]
        expected = (losses[0] - losses[1]) / 2e-5
        np.testing.assert_allclose(found[index], expected, atol=1e-4)
    assert (found == 0).any()


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("use_sinks", [True, False])
def test_attention_has_these_weights(causal, padded, use_sinks):
    layer = MultiHeadAttention(
        *(3, 4),
        use_entmax=True,
        use_sinks=use_sinks,
        use_bias=False,
        encoding=ALiBi(),
    )
    layer.build(STATES.shape, STATES.shape)
    if use_sinks:
        layer.sinks.assign(SINKS)
    mask = np.ones((2, 7), bool)
    mask[1, 4:] = not padded
    visible = np.broadcast_to(mask[:, None, None], (2, 1, 7, 7))
    if causal:
        visible = visible & np.tri(7, dtype=bool)
    query, key = (
        (STATES @ dense.kernel.numpy()).reshape(2, 7, 3, 4)
        for dense in (layer.query_dense, layer.key_dense)
    )
    features = np.ones((1, 7, 3, 4), "float32")
    bias = np.asarray(layer.encoding(features, causal=causal))
    scores = np.einsum("bihd,bjhd->bhij", query, key) / 2 + bias
    _, weights = layer(
        STATES,
        STATES,
        value_mask=mask,
        use_causal_mask=causal,
        return_attention_scores=True,
        positions=np.arange(7),
    )
    scores = np.where(visible, scores, -1e30)
    if use_sinks:
        sinks = np.broadcast_to(SINKS, (2, 3, 7, 1))
        scores = np.concatenate([scores, sinks], axis=-1)
    expected = bisect(scores)[..., :7]
    np.testing.assert_allclose(weights, expected, atol=1e-5)


def test_a_query_without_keys_gets_the_mean_as_with_softmax():
    layer = MultiHeadAttention(3, 4, use_entmax=True)
    _, weights = layer(
        STATES,
        STATES,
        attention_mask=np.zeros((1, 7), bool),
        return_attention_scores=True,
    )
    np.testing.assert_allclose(weights, np.full((2, 3, 7, 7), 1 / 7), rtol=1e-6)


@pytest.mark.parametrize(
    "mode", ["eager", pytest.param("xla", marks=pytest.mark.product)]
)
@pytest.mark.parametrize(
    "options",
    [{}, {"sliding_window": 3}, {"encoding": HardALiBi()}],
    ids=["plain", "window", "hidden"],
)
def test_chunks_change_nothing(options, mode):
    layer = MultiHeadAttention(3, 4, use_entmax=True, **options)
    layer.build(STATES.shape, STATES.shape)
    assert_chunks_change_nothing(
        layer, STATES, chunk_size=3, mode=mode, use_causal_mask=True
    )


def test_generation_is_the_full_pass():
    model = with_random_weights(decoder(RoPE(), use_entmax=True))
    ids = np.random.default_rng(0).integers(0, 3, (2, 5))
    assert_generation_is_the_full_pass(model, ids, np.array([3, 5]))


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision(policy):
    exact, layer = (
        MultiHeadAttention(3, 4, use_entmax=True, dtype=dtype)
        for dtype in ("float32", policy)
    )
    for each in (exact, layer):
        each.build(STATES.shape, STATES.shape)
    layer.set_weights(exact.get_weights())
    output = layer(STATES, STATES)
    assert keras.backend.standardize_dtype(output.dtype) == policy[6:]
    np.testing.assert_allclose(
        tf.cast(output, "float32"), exact(STATES, STATES), atol=0.05
    )


def test_where_it_has_no_use():
    for kind in (GeometricAttention, StickBreakingAttention):
        with pytest.raises(ValueError, match="has no use for use_entmax=True"):
            kind(3, 4, use_entmax=True)
    plain, sparse = (
        ForgettingAttention(3, 4, use_entmax=use_entmax)
        for use_entmax in (False, True)
    )
    for layer in (plain, sparse):
        layer.build(STATES.shape, STATES.shape)
    sparse.set_weights(plain.get_weights())
    outputs = [
        layer(STATES, STATES, use_causal_mask=True) for layer in (plain, sparse)
    ]
    assert not np.allclose(*outputs, atol=1e-3)
