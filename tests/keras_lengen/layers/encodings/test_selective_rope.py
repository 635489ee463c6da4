"""Rotations by angles that the tokens choose."""

import math

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from keras_lengen.layers import MultiHeadAttention, SelectiveRoPE
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


def find_angles(encoding, tokens):
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
        rates = [100 ** (-2 * m / WIDTH) for m in range(WIDTH // 2)]
        angles.append(total * rates)
    return np.array(angles)


def find_weights(attention, x, real):
    """Causal attention weights of one example, `(H, n, n)`."""
    x, turned = np.float64(x[real]), []
    angles = find_angles(attention.encoding, x)
    for dense in (attention.query_dense, attention.key_dense):
        features = (x @ np.float64(dense.kernel)).reshape(len(x), -1, WIDTH)
        first, second = np.split(features, 2, axis=-1)
        # Heads of one group have the angles of its keys.
        turn = np.exp(
            1j * angles.repeat(features.shape[1] // angles.shape[1], 1)
        )
        turned.append((first + 1j * second) * turn)
    query, key = turned
    key = key.repeat(HEADS // key.shape[1], axis=1)
    scores = np.einsum("ihm,jhm->hij", query, key.conj()).real
    scores = np.where(np.tri(len(x)), scores / math.sqrt(WIDTH), -np.inf)
    return special.softmax(scores, axis=-1)


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
    with pytest.raises(ValueError, match="width of a head is 3"):
        SelectiveRoPE()(np.ones((1, 2, 2, 3), "float32"))


def test_other_features_and_heads_need_another_encoding():
    encoding = make_attention().encoding
    for width, groups, message in (
        (MODEL_WIDTH + 4, None, "built for inputs of width 12; got .* 16"),
        (MODEL_WIDTH, 1, f"built for keys of {HEADS} heads; got .* 1 heads"),
    ):
        attention = MultiHeadAttention(
            HEADS, WIDTH, encoding=encoding, num_key_value_heads=groups
        )
        with pytest.raises(ValueError, match=message):
            attention.build((None, None, width), (None, None, width))
