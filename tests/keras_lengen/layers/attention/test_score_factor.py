"""Learned factors of attention scores."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import softmax

from keras_lengen.layers import (
    DAPE,
    ALiBi,
    ClippedBias,
    GeometricAttention,
    HardALiBi,
    MultiHeadAttention,
)
from keras_lengen.models import TransformerDecoder
from tests.keras_lengen.models.small import (
    assert_chunks_change_nothing,
    assert_generation_is_the_full_pass,
)
from tests.products import product

STATES = np.random.default_rng(0).normal(size=(2, 7, 12)).astype("float32")
FACTORS = np.array([0.5, 1.0, 2.5], "float32").reshape(3, 1, 1)


def make(score_factor, **arguments):
    layer = MultiHeadAttention(
        3, 4, score_factor=score_factor, use_bias=False, **arguments
    )
    layer.build(STATES.shape, STATES.shape)
    return layer


def products(layer):
    query, key = (
        (STATES @ dense.kernel.numpy()).reshape(2, 7, 3, 4)
        for dense in (layer.query_dense, layer.key_dense)
    )
    return np.einsum("bihd,bjhd->bhij", query, key) / 2


def test_the_factor_of_a_head_is_for_products_alone():
    encoding = ALiBi()
    layer = make("head", encoding=encoding)
    np.testing.assert_array_equal(layer.factor, np.ones((3, 1, 1)))
    layer.factor.assign(FACTORS)
    _, weights = layer(STATES, STATES, return_attention_scores=True)
    bias = np.asarray(encoding(np.ones((1, 7, 3, 4), "float32")))
    expected = softmax(FACTORS * products(layer) + bias, axis=-1)
    np.testing.assert_allclose(weights, expected, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(
    "encoding",
    [
        ALiBi(asymmetry=0),
        HardALiBi(windowed_heads=2),
        ClippedBias(max_distance=2, slope=None),
    ],
    ids=lambda encoding: type(encoding).__name__,
)
def test_scores_grow_with_the_number_of_visible_keys(encoding, causal, padded):
    layer = make("log_length", encoding=encoding)
    mean = np.log(np.arange(1, 1025)).mean()
    np.testing.assert_allclose(layer.factor, 1 / mean, rtol=1e-5)
    layer.factor.assign(FACTORS)
    bias = np.asarray(encoding(np.ones((1, 7, 3, 4), "float32")))
    visible = np.ones((2, 1, 7, 7), bool) & (bias > -5e8)
    arguments = {"use_causal_mask": causal, "positions": np.arange(7)}
    if padded:
        arguments["value_mask"] = np.arange(7) < np.array([[5], [7]])
        visible &= arguments["value_mask"][:, None, None]
    if causal:
        visible &= np.tri(7, dtype=bool)
    _, weights = layer(
        STATES, STATES, return_attention_scores=True, **arguments
    )
    logs = np.log(np.maximum(visible.sum(-1, keepdims=True), 1))
    scores = products(layer) * FACTORS * logs + bias
    expected = softmax(np.where(visible, scores, -1e30), axis=-1)
    sees = visible.any(axis=-1) & np.ones((2, 3, 7), bool)
    np.testing.assert_allclose(
        np.asarray(weights)[sees], expected[sees], atol=1e-5
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padding", [None, "behind", "before"])
@pytest.mark.parametrize("window", [None, 3])
def test_adaptive_factors_are_the_formula(window, padding, causal):
    encoding = ALiBi()
    layer = make("adaptive", encoding=encoding, sliding_window=window)
    np.testing.assert_array_equal(layer.factor, np.zeros((2, 12, 3)))
    layer.factor.assign(np.random.default_rng(1).normal(size=(2, 12, 3)))
    slope, power = np.einsum("btm,nmh->nbht", STATES, layer.factor.numpy())
    mask = np.ones((2, 7), bool)
    if padding:
        mask[1, -3:] = False
        mask = mask if padding == "behind" else mask[:, ::-1]
    index = np.maximum(mask.cumsum(axis=-1) - 1, 0)[:, None]
    factors = np.log1p(np.exp(slope)) * np.log(index + 2) ** (
        2 * np.tanh(power)
    )
    bias = encoding(
        np.ones((1, 7, 3, 4), "float32"), causal=causal, training=False
    )
    scores = products(layer) * (1 + factors[..., None]) + np.asarray(bias)
    distances = np.arange(7)[:, None] - np.arange(7)
    visible = mask[:, None, None] & np.ones((7, 7), bool)
    if causal:
        visible = visible & (distances >= 0)
    if window:
        visible = visible & (abs(distances) < window)
    _, weights = layer(
        STATES,
        STATES,
        positions=np.arange(7),
        value_mask=mask,
        use_causal_mask=causal,
        return_attention_scores=True,
    )
    expected = softmax(np.where(visible, scores, -1e30), axis=-1)
    real = np.broadcast_to(mask[:, None], (2, 3, 7))
    np.testing.assert_allclose(
        np.asarray(weights)[real], expected[real], atol=1e-5
    )


def test_gradients_of_adaptive_factors_are_differences():
    layer = make("adaptive", use_entmax=True)
    start = np.random.default_rng(1).normal(size=(2, 12, 3))
    direction = np.random.default_rng(2).normal(size=start.shape)

    def compute(step):
        layer.factor.assign(start + step * direction)
        outputs = layer(STATES, STATES, use_causal_mask=True)
        return tf.reduce_sum(tf.sin(3 * outputs))

    with tf.GradientTape() as tape:
        loss = compute(0)
    gradient = np.asarray(tape.gradient(loss, layer.factor.value))
    expected = (compute(5e-3) - compute(-5e-3)) / 1e-2
    np.testing.assert_allclose(
        (gradient * direction).sum(), expected, rtol=0.02
    )


@pytest.mark.parametrize(
    ("count", "plain", "scaled"),
    [
        (10, 0.942826, 0.940101),
        (100, 0.59986, 0.995063),
        (1000, 0.129346, 0.999646),
    ],
)
def test_published_weights(count, plain, scaled):
    """Of one key with score 3 among others with -2."""
    states = np.full((1, count, 1), -2, "float32")
    states[0, 0] = 3
    for score_factor, expected in ((None, plain), ("log_length", scaled)):
        layer = MultiHeadAttention(
            1, 1, score_factor=score_factor, use_bias=False
        )
        layer.build((1, 1, 1), states.shape)
        layer.set_weights([np.ones_like(w) for w in layer.get_weights()])
        if score_factor is not None:
            layer.factor.assign([[[0.43]]])
        _, weights = layer(
            np.ones((1, 1, 1)), states, return_attention_scores=True
        )
        np.testing.assert_allclose(weights[0, 0, 0, 0], expected, atol=1e-5)


@pytest.mark.parametrize("windowed", [HardALiBi(), DAPE(encoding=HardALiBi())])
def test_a_single_visible_key_has_all_the_weight(windowed):
    layer = MultiHeadAttention(
        3, 4, score_factor="log_length", encoding=windowed
    )
    _, weights = layer(STATES, STATES, return_attention_scores=True)
    weights = np.asarray(weights)[:, 0]
    # Hidden keys have no weight at all; a softmax sums to 1 after rounding.
    np.testing.assert_allclose(weights, np.stack([np.eye(7)] * 2), rtol=1e-6)


@pytest.mark.parametrize(
    ("score_factor", "encoding", "window"),
    product(
        [
            ("head", None, None),
            ("log_length", None, None),
            ("log_length", HardALiBi(), None),
            ("adaptive", ALiBi(), None),
            ("adaptive", None, 3),
        ],
        keep=[("log_length", None, None), ("adaptive", None, 3)],
    ),
)
def test_generation_and_chunks_are_the_full_pass(
    score_factor, encoding, window
):
    keras.utils.set_random_seed(0)
    model = TransformerDecoder(
        vocabulary_size=9,
        output_size=9,
        num_layers=2,
        num_heads=2,
        model_dim=16,
        score_factor=score_factor,
        encoding=encoding,
        sliding_window=window,
    )
    generator = np.random.default_rng(1)
    for block in model.blocks:
        factor = block.attention_layer.factor
        factor.assign(0.3 + generator.uniform(size=factor.shape))
    ids = np.random.default_rng(0).integers(0, 9, (2, 5))
    lengths = np.array([3, 5])
    assert_generation_is_the_full_pass(model, ids, lengths)
    assert_chunks_change_nothing(model, ids)


def test_attention_without_scores_refuses_it():
    with pytest.raises(ValueError, match="no use for score_factor='head'"):
        GeometricAttention(2, 4, score_factor="head")
    with pytest.raises(ValueError, match=r'score_factor .* "log_length"'):
        MultiHeadAttention(2, 4, score_factor="heads")


@pytest.mark.parametrize("symbolic", [False, True])
def test_adaptive_factors_need_the_index_of_a_query(symbolic):
    layer = MultiHeadAttention(3, 4, score_factor="adaptive")
    query, value = STATES[:, :3], STATES
    if symbolic:
        query, value = keras.Input((3, 12)), keras.Input((7, 12))
    with pytest.raises(ValueError, match="index of a query among the keys"):
        layer(query, value)
    assert layer(query, value, use_causal_mask=True).shape[1:] == (3, 12)
