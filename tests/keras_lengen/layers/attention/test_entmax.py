"""Sparse attention weights."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers.attention.entmax import entmax
from tests.keras_lengen.layers.attention import oracle

RANDOM = np.random.default_rng(5)


def spread(kind, keys):
    """Scores `(2, 1, 3, keys)`, with which searches take long or are wrong."""
    indices = np.arange(1, keys + 1)
    scores = {
        "equal": np.zeros(keys),
        "far": RANDOM.normal(size=(2, 1, 3, keys)) * 30 + 1000,
        "one and a crowd": np.where(indices == 1, 0, -1.998),
        "crowds": -2 + 2 * 0.5 ** np.floor(np.log2(indices)),
        "hidden": np.where(indices % 2, RANDOM.normal(size=keys), -1e30),
    }[kind]
    return np.broadcast_to(scores, (2, 1, 3, keys)).astype("float32")


@pytest.mark.parametrize("keys", [3, 65536])
@pytest.mark.parametrize(
    "kind", ["equal", "far", "one and a crowd", "crowds", "hidden"]
)
def test_weights_are_those_of_a_bisection(kind, keys):
    scores = spread(kind, keys)
    weights = np.asarray(entmax(tf.constant(scores)))
    expected = oracle.entmax(scores)
    np.testing.assert_allclose(weights, expected, rtol=2e-4, atol=5e-7)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
    if kind == "far":
        assert (weights == 0).mean() > 0.3


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
    steps = 1e-5 * np.eye(scores.size).reshape(-1, *scores.shape)
    after, before = (
        (oracle.entmax(scores + sign * steps) * factors).sum((1, 2, 3, 4))
        for sign in (1, -1)
    )
    expected = (after - before).reshape(scores.shape) / 2e-5
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert (found == 0).any()
