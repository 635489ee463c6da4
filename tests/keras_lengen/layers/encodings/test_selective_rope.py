"""Rotations by angles that the tokens choose."""

import itertools
import math

import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import (
    AxialEncoding,
    MultiHeadAttention,
    RoPE,
    SelectiveRoPE,
)
from tests.keras_lengen.layers.encodings.table import HEADS, WIDTH
from tests.keras_lengen.models.small import decoder

RANDOM = np.random.default_rng(3)
MODEL_WIDTH = 12


def make_attention(groups=None, **arguments):
    attention = MultiHeadAttention(
        HEADS,
        WIDTH,
        encoding=SelectiveRoPE(max_wavelength=100, rank=3),
        num_key_value_heads=groups,
        **arguments,
    )
    attention.build((None, None, MODEL_WIDTH), (None, None, MODEL_WIDTH))
    for weight in attention.encoding.weights:
        weight.assign(2 * RANDOM.normal(size=weight.shape))
    return attention


def find_angles(encoding, tokens, base=100):
    """Angles from the formula, of one sequence `(T, M)` without padding."""
    down, up, kernel = map(np.float64, encoding.get_weights())
    steps = [
        np.einsum("m,mr,rhc->hc", x / np.linalg.norm(x), down, up)
        for x in np.float64(tokens)
    ]
    angles, total = [], np.zeros_like(steps[0])
    for t in range(len(steps)):
        for lag in range(min(t, 3) + 1):
            total = total + kernel[lag] * steps[t - lag]
        rates = [base ** (-2 * m / WIDTH) for m in range(WIDTH // 2)]
        angles.append(total * rates)
    return np.array(angles)


def find_weights(attention, x, real):
    """Causal attention weights of one example, `(H, n, n)`."""
    x = np.float64(x[real])
    query, key = (
        (x @ np.float64(dense.kernel)).reshape(len(x), -1, WIDTH)
        for dense in (attention.query_dense, attention.key_dense)
    )
    angles, half = find_angles(attention.encoding, x), WIDTH // 2
    weights = np.zeros((HEADS, len(x), len(x)))
    for h, i in itertools.product(range(HEADS), range(len(x))):
        group = h * key.shape[1] // HEADS
        for j in range(i + 1):
            score = 0
            for m in range(half):
                angle = angles[i, group, m] - angles[j, group, m]
                q, k = (
                    complex(features[m], features[m + half])
                    for features in (query[i, h], key[j, group])
                )
                turned = q * complex(math.cos(angle), math.sin(angle))
                score += (turned * k.conjugate()).real
            weights[h, i, j] = math.exp(score / math.sqrt(WIDTH))
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("groups", [None, 1])
def test_weights_are_the_formula_and_padding_makes_no_step(groups):
    attention = make_attention(groups, use_bias=False)
    x = RANDOM.normal(size=(3, 8, MODEL_WIDTH)).astype("float32")
    mask = np.ones((3, 8), bool)
    mask[1, [0, 1, 4]] = mask[2, 6:] = False
    _, weights = attention(
        x,
        x,
        value_mask=mask,
        use_causal_mask=True,
        return_attention_scores=True,
    )
    for example, real in enumerate(mask):
        np.testing.assert_allclose(
            np.asarray(weights)[example][:, real][:, :, real],
            find_weights(attention, x[example], real),
            atol=1e-4,
        )


def test_a_token_of_zeros_has_a_finite_gradient():
    attention = MultiHeadAttention(
        *(HEADS, WIDTH),
        bias_initializer="ones",
        encoding=SelectiveRoPE(),
        dtype="mixed_float16",
    )
    x = RANDOM.normal(size=(2, 8, MODEL_WIDTH))
    x[:, 2] = 0
    x = tf.constant(x, "float16")
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = attention(x, x, use_causal_mask=True)
        loss = tf.reduce_sum(tf.square(outputs))
    assert np.isfinite(tape.gradient(loss, x)).all()


def test_what_it_does_not_fit_is_refused():
    attention, x = make_attention(), np.ones((1, 4, MODEL_WIDTH), "float32")
    with pytest.raises(ValueError, match="the queries' own tokens"):
        attention(x, x + 1)
    with pytest.raises(ValueError, match="between two sequences"):
        decoder(cross_attention=True, cross_encoding=SelectiveRoPE())
    with pytest.raises(ValueError, match="no use for rows"):
        AxialEncoding(row=RoPE(), column=SelectiveRoPE())
    with pytest.raises(ValueError, match="width of a head is 3"):
        SelectiveRoPE()(np.ones((1, 2, 2, 3), "float32"))


@pytest.mark.parametrize(
    "width, groups, message",
    [
        (MODEL_WIDTH + 4, None, "built for inputs of width 12; got .* 16"),
        (MODEL_WIDTH, 1, f"built for keys of {HEADS} heads; got .* 1 heads"),
    ],
)
def test_other_features_and_heads_need_another_encoding(width, groups, message):
    encoding = make_attention().encoding
    attention = MultiHeadAttention(
        HEADS, WIDTH, encoding=encoding, num_key_value_heads=groups
    )
    with pytest.raises(ValueError, match=message):
        attention.build((None, None, width), (None, None, width))
