"""Rotary position embedding with slower rotation for longer sequences."""

import keras
import numpy as np
from keras import ops

from keras_lengen.checks.arguments import (
    LARGEST_POSITION,
    Integer,
    Number,
    Optional,
)
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.rope import RoPE
from keras_lengen.types import Array, InputShape, Size, Tensor


class ScalingFactor(Number):
    """Length of the context relative to the trained sequences."""

    def __init__(self, *, example: float) -> None:
        super().__init__(1, LARGEST_POSITION, example=example)


class OriginalLength(Integer):
    """Length of the longest trained sequence in tokens."""

    def __init__(self, least: int = 1, *, example: int) -> None:
        super().__init__(
            least,
            LARGEST_POSITION,
            example=example,
            what="the longest trained sequence in tokens",
        )


@keras.saving.register_keras_serializable(package="keras_lengen")
class NTKRoPE(RoPE):
    """Slows the rotation of slow pairs for longer sequences (NTK-aware RoPE).

    This is `RoPE` with the base `max_wavelength * s ** (R / (R - 2))`. The
    fastest feature pair rotates as in `RoPE` and the slowest one `s` times
    slower, so that positions `s` times larger give angles that occurred in
    training. In the fixed form, `s = scaling_factor`. In the dynamic form,
    with `L = original_length`,
    `s = scaling_factor * length / L - (scaling_factor - 1)` for sequences
    longer than `L`, and `s = 1` for all others.

    Stage: `rotate`, `(B, T, H, D)` to the same. No weights.
    Positions: any numbers; only differences matter.

    Args:
        scaling_factor: float from 1 to `2 ** 24`. The factor `s` of the fixed
            form; in the dynamic form, a factor of the relative length, as
            above.
        original_length: int, from 1 to `2 ** 24`. Length of the longest
            trained sequence in tokens, or `None` for the fixed form.
        max_wavelength: float above 1, at most `2 ** 40`. Base of the geometric
            series of frequencies.
        rotary_fraction: float above 0 and at most 1. Fraction of each head's
            features that are rotated.
        fastest_fraction: float from 0 to 1. Fraction of the pairs that rotate,
            as for `RoPE`.
        layout: str, `"interleaved"` or `"halves"`, as for `RoPE`.
        sampler: `PositionSampler`, or `None` for positions 0, 1, 2, ...

    Raises:
        ValueError: If the number of rotated features is odd or below 4, or an
            argument is out of range.

    Differs from the released code: the base depends on the length in every
    call, so it becomes smaller again when a short sequence follows a long one.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import NTKRoPE
    >>> NTKRoPE(scaling_factor=8)(ops.ones((2, 5, 4, 8))).shape
    TensorShape([2, 5, 4, 8])
    >>> encoding = NTKRoPE(original_length=2048)
    >>> encoding(ops.ones((2, 5, 4, 8)), length=4096).shape
    TensorShape([2, 5, 4, 8])

    Reference: bloc97, 2023, as described by Peng et al., 2024, section 3.1 and
    appendix A.2. https://arxiv.org/abs/2309.00071
    """

    scaling_factor: float = argument(ScalingFactor(example=2.0), default=1.0)
    original_length: int | None = argument(
        Optional(OriginalLength(example=4)), default=None
    )

    uses_length = True

    def build(
        self, query_shape: InputShape, key_shape: InputShape | None = None
    ) -> None:
        super().build(query_shape, key_shape)
        width = self._find_rotary_width(query_shape[-1])
        if width < 4:
            raise ValueError(
                f"{type(self).__name__} needs at least 4 rotated features, "
                f"but it rotates {width} of a head: raise the width of the "
                "heads or rotary_fraction."
            )

    def _find_rates(self, width: int, length: Size) -> Array | Tensor:
        rates = self._find_frequencies(width)
        scale: float | Tensor = self.scaling_factor
        if self.original_length is not None:
            scale = self.scaling_factor * find_relative_length(
                length, self.original_length
            )
            scale = scale - (self.scaling_factor - 1)
        # Pair m rotates s ** (2 m / (R - 2)) times slower.
        exponents = np.arange(0, width, 2) / (width - 2)
        if not ops.is_tensor(scale):
            return rates * max(scale, 1.0) ** -exponents
        slowing = ops.multiply(
            -ops.log(ops.maximum(scale, 1.0)), exponents.astype("float32")
        )
        return ops.multiply(rates.astype("float32"), ops.exp(slowing))


def find_relative_length(length: Size, original_length: int) -> float | Tensor:
    """Computes `length / original_length`.

    Args:
        length: Numbers `()`, `(B,)` of each example or `(B, T)` of each token.
        original_length: int.

    Returns:
        A float if the length is a number, else float32 `()`, `(B, 1, 1)` or
        `(B, T, 1)`.
    """
    if isinstance(length, int | float):
        return length / original_length
    length = ops.cast(length, "float32") / original_length
    axes = len(length.shape)
    return (
        length if axes == 0 else ops.expand_dims(length, (-1, -2)[: 3 - axes])
    )
