"""Weighted sums of values, with a gradient of few operations."""

import keras

from keras_lengen.types import Tensor


def is_tensorflow_graph() -> bool:
    """Whether TensorFlow traces a program, whose gradients can be replaced.

    Elsewhere, replacing a gradient takes longer than the sums of small tensors.
    """
    if keras.backend.backend() != "tensorflow":
        return False
    import tensorflow as tf

    return not tf.executing_eagerly()


def sum_values(scores: Tensor, weights: Tensor, value: Tensor) -> Tensor:
    """Sums values by the softmax of scores, with TensorFlow.

    TensorFlow computes each operation of a gradient by itself. Its gradient of
    a softmax sums the products of the weights and their gradients over all
    keys. These sums are also the products of a query's output and the gradient
    of it, which are far smaller tensors.

    Args:
        scores: float32 `(B, H, T, S)`.
        weights: float32 `(B, H, T, S)`, the softmax of the scores.
        value: float32 `(B, S, H, value_dim)`.

    Returns:
        float32 `(B, T, H, value_dim)`.
    """
    import tensorflow as tf

    @keras.ops.custom_gradient
    def compute(scores: Tensor, weights: Tensor, value: Tensor) -> Tensor:
        value = _swap_axes(value)
        output = tf.matmul(weights, value)

        def gradients(upstream: Tensor) -> tuple[Tensor, None, Tensor]:
            upstream = _swap_axes(upstream)
            of_weights = tf.matmul(upstream, value, transpose_b=True)
            mean = tf.reduce_sum(upstream * output, axis=-1, keepdims=True)
            of_value = tf.matmul(weights, upstream, transpose_a=True)
            return weights * (of_weights - mean), None, _swap_axes(of_value)

        return _swap_axes(output), gradients

    return compute(scores, weights, value)


def _swap_axes(features: Tensor) -> Tensor:
    """Swaps the axes of tokens and heads."""
    return keras.ops.transpose(features, (0, 2, 1, 3))
