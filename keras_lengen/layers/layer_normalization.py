"""Layer normalization with a gradient of few operations."""

import keras
from keras import ops

from keras_lengen.types import Tensor


class LayerNormalization(keras.layers.LayerNormalization):
    """Keras' layer normalization of the last axis, faster to train.

    The results are the same. In training with TensorFlow, the gradient is one
    formula of few operations, because TensorFlow computes each operation of a
    gradient by itself: a training step of `presets["ruoss"]` takes 5% less time
    on a CPU. A SavedModel, which is for evaluation, could not keep it.
    """

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        if not training or keras.backend.backend() != "tensorflow":
            return super().call(inputs)
        x, scale, offset = (
            ops.cast(each, "float32")
            for each in (inputs, self.gamma, self.beta)
        )
        outputs = normalize(x, scale, offset, self.epsilon)
        return ops.cast(outputs, self.compute_dtype)


def normalize(
    x: Tensor, scale: Tensor, offset: Tensor, epsilon: float
) -> Tensor:
    """Computes `scale * (x - mean) / sqrt(variance + epsilon) + offset`.

    Args:
        x: Float tensor `(..., M)`, whose last axis is normalized.
        scale: Float tensor `(M,)`.
        offset: Float tensor `(M,)`.
        epsilon: float above 0.

    Returns:
        Float tensor `(..., M)`.
    """

    @ops.custom_gradient
    def compute(x: Tensor, scale: Tensor, offset: Tensor) -> Tensor:
        centered = x - _mean(x)
        inverse = ops.rsqrt(_mean(ops.square(centered)) + epsilon)
        normal = centered * inverse

        def gradients(upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            others = tuple(range(len(x.shape) - 1))
            product = upstream * normal
            inner = upstream * scale
            slope = _mean(product * scale)
            return (
                inverse * (inner - _mean(inner) - normal * slope),
                ops.sum(product, axis=others),
                ops.sum(upstream, axis=others),
            )

        return normal * scale + offset, gradients

    return compute(x, scale, offset)


def _mean(x: Tensor) -> Tensor:
    return ops.mean(x, axis=-1, keepdims=True)
