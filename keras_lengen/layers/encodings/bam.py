"""Generalized Gaussian bias: a learned power of the distance, of any sign."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_lengen.layers.encodings.alibi import make_slopes
from keras_lengen.layers.encodings.base import AttentionSpec
from keras_lengen.layers.encodings.bias import BiasEncoding
from keras_lengen.layers.encodings.distances import (
    add_head_axis,
    find_signed_distances,
)
from keras_lengen.types import InputShape, Positions, Tensor

SMALLEST = 1e-5
"""Number added to distances, so that 0 has a power with any exponent."""

LARGEST = 20.0
"""Largest logarithm of a penalty. With the penalty `exp(20)`, a key has a
weight of exactly 0 next to others; larger ones may overflow float32."""


@keras.saving.register_keras_serializable(package="keras_lengen")
class BAM(BiasEncoding):
    """Adds a learned generalized Gaussian prior over distances (BAM).

    Head `h` adds `-scale[h] * (|d - center[h]| + 1e-5) ** exponent[h]` to its
    scores, with `d = key_position - query_position`,
    `scale = exp(log_scale)` and `center = exp(mu) - exp(-mu)`. A positive
    exponent penalises far keys, as `ALiBi` does with the exponent 1; a negative
    one penalises the keys near the center and leaves far keys free. Penalties
    are limited to `exp(20)`, so that they stay finite.

    At first, the exponent is 1, the center 0 and the scale the slope of
    `ALiBi`.

    It is a class of its own and not an option of `PowerKERPLE`, because
    distances, weights and the ranges of the weights all differ.

    Stage: `attention_bias`, float32 `(1 or B, H, T, S)`, added to scaled
    scores. Weights, in every layer: `exponent (H,)`, `log_scale (H,)` and
    `mu (H,)`.
    Positions: any numbers, with or without gaps; only differences matter.

    Args:
        sampler: `PositionSampler`, or `None` for positions 0, 1, 2, ...

    Differs from the paper: the initial values are chosen here, and attention
    need not be causal. The paper also scales scores by the length, for which
    attention layers have `score_factor="log_length"`.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import BAM
    >>> encoding = BAM()
    >>> encoding.build((None, None, 1, 4))
    >>> _ = encoding.exponent.assign([-1.0]), encoding.log_scale.assign([0.0])
    >>> far, near, same = encoding(ops.ones((1, 3, 1, 4)))[0, 0, 2].numpy()
    >>> round(float(far), 3), round(float(near), 3), bool(same < -99_000)
    (-0.5, -1.0, True)

    Reference: Bianchessi et al., 2025. https://arxiv.org/abs/2505.22842
    """

    share_layers = False

    shift_invariant = True

    def build(
        self, query_shape: InputShape, key_shape: InputShape | None = None
    ) -> None:
        super().build(query_shape, key_shape)
        heads = query_shape[-2]
        self.exponent, self.log_scale, self.mu = (
            self.add_weight(
                name=name,
                shape=(heads,),
                initializer=initializer,
                autocast=False,
            )
            for name, initializer in (
                ("exponent", "ones"),
                ("log_scale", _make_log_slopes),
                ("mu", "zeros"),
            )
        )

    def prepare(
        self,
        query_positions: Positions,
        key_positions: Positions,
        spec: AttentionSpec,
    ) -> Any:
        return add_head_axis(
            find_signed_distances(query_positions, key_positions, "positions")
        )

    def bias_at(self, prepared: Any, query: Tensor, key: Tensor) -> Tensor:
        return _penalize(
            prepared,
            *(
                ops.reshape(number, (-1, 1, 1))
                for number in self._find_numbers()
            ),
        )

    def bias_of_pair(
        self,
        parameters: Sequence[Tensor],
        query_position: Tensor,
        key_position: Tensor,
        *,
        causal: bool = False,
    ) -> Tensor:
        return _penalize(key_position - query_position, *parameters)

    def make_pair_parameters(self, heads: int) -> Tensor:
        return ops.stack(self._find_numbers(), axis=-1)

    def _find_numbers(self) -> list[Tensor]:
        """Returns exponents, logarithms of scales and centers, float32."""
        exponent, log_scale, mu = (
            ops.cast(weight, "float32")
            for weight in (self.exponent, self.log_scale, self.mu)
        )
        return [exponent, log_scale, ops.exp(mu) - ops.exp(-mu)]


def _penalize(
    steps: Tensor, exponent: Tensor, log_scale: Tensor, center: Tensor
) -> Tensor:
    logs = ops.log(ops.abs(steps - center) + SMALLEST)
    # Limited before the exponential, whose gradient would be infinite.
    return -ops.exp(ops.minimum(log_scale + exponent * logs, LARGEST))


def _make_log_slopes(shape: tuple[int], dtype: str) -> Tensor:
    (heads,) = shape
    return ops.convert_to_tensor(np.log(make_slopes(heads)), dtype)
