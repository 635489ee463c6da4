"""The gradient of sums by a softmax is that of TensorFlow's operations."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import ALiBi, MultiHeadAttention
from keras_lengen.layers.attention import engines
from keras_lengen.layers.attention.weighted_sums import sum_values

RANDOM = np.random.default_rng(0)


def draw(*shape):
    return tf.constant(RANDOM.normal(size=shape).astype("float32"))


def differentiate(function, inputs):
    """Computes the outputs, their gradients, and gradients of these."""
    with tf.GradientTape() as outer:
        outer.watch(inputs)
        with tf.GradientTape() as inner:
            inner.watch(inputs)
            outputs = function(*inputs)
            loss = sum(tf.reduce_sum(tf.sin(3 * each)) for each in outputs)
        first = inner.gradient(loss, inputs)
        loss = sum(tf.reduce_sum(each**2) for each in first)
    return [*outputs, *first, *outer.gradient(loss, inputs)]


@pytest.mark.parametrize("compiled", [False, True])
def test_second_derivatives_are_those_of_operations(compiled):
    def plain(scores, value):
        weights = tf.nn.softmax(scores)
        return tf.einsum("bhts,bshd->bthd", weights, value), weights

    def ours(scores, value):
        weights = tf.nn.softmax(scores)
        return sum_values(scores, weights, value), weights

    def both(*inputs):
        return [differentiate(each, inputs) for each in (ours, plain)]

    both = tf.function(both, jit_compile=compiled)
    results = both(draw(2, 3, 4, 5), draw(2, 5, 3, 6))
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_attention_without_visible_keys(monkeypatch):
    layer = MultiHeadAttention(2, 4, encoding=ALiBi(), chunk_size=3)
    inputs = draw(3, 7, 8)
    layer.build(inputs.shape, inputs.shape)
    lengths = np.array([7, 3, 0])
    mask = tf.constant(np.arange(7) < lengths[:, None])

    def differentiate_once():
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = layer(
                *(inputs, inputs),
                value_mask=mask,
                use_causal_mask=True,
                training=True,
            )
            loss = tf.reduce_sum(tf.sin(outputs))
        return outputs, tape.gradient(loss, inputs)

    found = tf.function(differentiate_once)()
    monkeypatch.setattr(engines, "is_tensorflow_graph", lambda: False)
    expected = tf.function(differentiate_once)()
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"dropout": 0.1}, False),
        ({"use_sinks": True}, False),
        ({"use_entmax": True}, False),
        ({"dtype": "mixed_bfloat16"}, False),
    ],
)
def test_where_it_is_used(options, expected, monkeypatch):
    calls = []

    def record(*tensors):
        calls.append(tensors)
        return sum_values(*tensors)

    def is_used(call, keys, training):
        calls.clear()
        call(draw(1, 3, 8), draw(1, keys, 8), training=training)
        return bool(calls)

    monkeypatch.setattr(engines, "sum_values", record)
    layer = MultiHeadAttention(2, 4, **options)
    graph = tf.function(layer.__call__)
    assert not is_used(layer, 3, training=True)
    assert is_used(graph, 3, training=True) == expected
    assert not is_used(graph, 1, training=True)
    assert not is_used(graph, 3, training=False)
