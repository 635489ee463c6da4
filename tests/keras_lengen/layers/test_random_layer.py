"""Layers that Keras computes twice draw the same numbers twice.

Runs on TensorFlow, and on JAX by `tests/keras_lengen/test_backends.py`.
"""

import keras
import numpy as np
import pytest
from keras import ops

from keras_lengen.conformance.requirements import restart
from keras_lengen.layers import (
    GeometricAttention,
    MultiHeadAttention,
    RandomizedRoPE,
    RandomizedSinusoidalEncoding,
    Recipe,
    TransformerBlock,
)
from keras_lengen.layers.random_layer import Dropout
from tests.covering import cover

INPUTS = np.random.default_rng(0).normal(size=(2, 6, 16)).astype("float32")


def randomized():
    return RandomizedRoPE(max_position=64)


LAYERS = {
    "attention": lambda: MultiHeadAttention(
        2, 8, encoding=randomized(), dropout=0.3
    ),
    "chunked attention": lambda: MultiHeadAttention(
        2, 8, encoding=randomized(), dropout=0.3, chunk_size=4
    ),
    "geometric attention": lambda: GeometricAttention(2, 8, dropout=0.3),
    "block": lambda: TransformerBlock(
        2,
        encoding=randomized(),
        dropout=0.3,
        attention=Recipe(MultiHeadAttention, dropout=0.3),
    ),
    "absolute encoding": lambda: RandomizedSinusoidalEncoding(max_position=64),
    "rotary encoding": randomized,
    "dropout": lambda: Dropout(0.5),
}


def run(layer, inputs):
    if isinstance(layer, MultiHeadAttention):
        return layer(inputs, inputs, training=True)
    return layer(inputs, training=True)


def value_and_gradient(function, inputs):
    """A function's value and its gradient, by the backend."""
    if keras.backend.backend() == "jax":
        import jax

        return jax.value_and_grad(function)(inputs)
    import tensorflow as tf

    inputs = tf.constant(inputs)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        value = function(inputs)
    return value, tape.gradient(value, inputs)


@pytest.mark.product
@pytest.mark.parametrize("in_graph", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_gradients_are_those_of_the_numbers_drawn_forward(name, in_graph):
    if keras.backend.backend() == "jax" and (in_graph or name != "attention"):
        pytest.skip("computes every operation by itself, which takes minutes")
    with keras.RematScope(mode="full"):
        layer = LAYERS[name]()
        weights = np.random.default_rng(1).normal(size=INPUTS.shape)

        def loss(inputs):
            return ops.sum(ops.tanh(run(layer, inputs)) * weights)

        run(layer, INPUTS)
        if in_graph:
            import tensorflow as tf

            loss = tf.function(loss)
        restart(layer)
        _, gradient = value_and_gradient(loss, INPUTS)
        direction = np.sign(gradient).astype("float32")
        ends = []
        for sign in (1, -1):
            restart(layer)
            ends.append(float(loss(INPUTS + sign * 1e-2 * direction)))
    slope = (ends[0] - ends[1]) / 2e-2
    np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=0.02)


def test_draws_move_on_under_rematerialization():
    with keras.RematScope(mode="full"):
        layer = LAYERS["attention"]()
        outputs = [np.asarray(run(layer, INPUTS)) for _ in range(3)]
    assert not np.allclose(outputs[0], outputs[1])
    assert not np.allclose(outputs[1], outputs[2])


@pytest.mark.parametrize(
    ("width", "rate"), cover([1, 7, 64], [1e-5, 0.1, 0.5, 0.99])
)
def test_dropout_drops_its_rate_and_keeps_the_mean(width, rate):
    layer = Dropout(rate, seed=0)
    features = np.ones((200_000 // width, width), "float32")
    outputs = np.array(layer(features, training=True))
    dropped = outputs == 0
    error = 4 * np.sqrt(rate * (1 - rate) / dropped.size) + 2**-16
    assert abs(np.mean(dropped) - rate) < error
    np.testing.assert_allclose(
        outputs[~dropped], 1 / (1 - rate), rtol=2**-16 / (1 - rate)
    )
    again = np.array(layer(features, training=True)) == 0
    if rate in (0.1, 0.5):
        # Draws of two calls, and of neighbouring features, are independent.
        both = [dropped & again]
        if width > 1:
            both.append(dropped[:, : width // 2] & dropped[:, -(width // 2) :])
        for each in both:
            assert abs(np.mean(each) - rate**2) < 0.005
