import math

import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import FIRE
from tests.keras_lengen.layers.encodings.table import (
    HEADS,
    make_built,
    random_inputs,
)

QUERY, KEY = random_inputs("bias")
RANDOM = np.random.default_rng(1)
NEAR = np.array([0, 1, 4, 30, 31, 63])
FAR = np.array([2, 60, 64, 65, 900, 2000.5])


def trained(**kwargs):
    """An encoding with random weights."""
    encoding = make_built("FIRE", threshold=64, **kwargs)
    encoding.set_weights(
        [
            np.asarray(RANDOM.normal(size=w.shape), "float32")
            for w in encoding.weights
        ]
    )
    return encoding


def score(encoding, i, j, denominator_position):
    """Bias of all heads for one pair, by the definition."""
    c, m, hidden_kernel, hidden_bias, output_kernel, output_bias = (
        np.asarray(weight, "float64") for weight in encoding.weights
    )

    def f(x):
        return math.log(abs(c * x) + 1)

    threshold = abs(m * encoding.threshold)
    x = f(i - j) / (f(max(denominator_position, threshold)) + 1e-6)
    hidden = [
        max(weight * x + bias, 0)
        for weight, bias in zip(hidden_kernel, hidden_bias, strict=True)
    ]
    return hidden @ output_kernel + output_bias


def test_published_argument():
    """A network that returns its input shows what it is given."""
    encoding = FIRE(hidden_dim=1)
    query = np.ones((1, 21, 1, 4), "float32")
    encoding.build(query.shape)
    one, zero = np.ones((1, 1), "float32"), np.zeros(1, "float32")
    c, m = encoding.get_weights()[:2]
    encoding.set_weights([c, m, one[0], zero, one, zero])
    np.testing.assert_allclose(
        encoding(query)[0, 0, 20, 5], 0.231674, atol=1e-6
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("positions", [NEAR, FAR, np.stack([NEAR, FAR])])
def test_definition(positions, causal):
    """For past keys, it is the published causal form."""
    encoding = trained()
    bias = encoding(QUERY, KEY, positions=positions, causal=causal)
    for example, own in zip(bias, np.atleast_2d(positions), strict=True):
        for t, s in np.ndindex(6, 6):
            i, j = own[[t, s]]
            if causal and j > i:
                continue
            np.testing.assert_allclose(
                example[:, t, s], score(encoding, i, j, max(i, j)), atol=1e-4
            )


@pytest.mark.parametrize(("factor", "threshold"), [(0.5, 32), (-2, 128)])
def test_the_threshold_is_learned(factor, threshold):
    encoding = make_built("FIRE", threshold=64)
    other = make_built("FIRE", threshold=threshold)
    other.set_weights(encoding.get_weights())
    encoding.m.assign(factor)
    np.testing.assert_allclose(
        encoding(QUERY, KEY, positions=NEAR),
        other(QUERY, KEY, positions=NEAR),
        atol=1e-6,
    )


def test_gradients_at_distance_zero():
    encoding = make_built("FIRE")
    with tf.GradientTape() as tape:
        bias = encoding(QUERY, KEY, positions=np.zeros(6, "int32"))
        total = tf.reduce_sum(bias)
    weights = [weight.value for weight in encoding.weights]
    gradients = tape.gradient(total, weights)
    assert all(np.isfinite(gradient).all() for gradient in gradients)
    np.testing.assert_allclose(gradients[-1], [36] * HEADS)
