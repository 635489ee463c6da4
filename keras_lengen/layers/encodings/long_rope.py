"""Rotary position embedding with a factor for each pair."""

import math
from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_lengen.checks.arguments import (
    LARGEST_POSITION,
    Number,
    Optional,
    Tuple,
)
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.ntk_rope import (
    OriginalLength,
    ScalingFactor,
    find_relative_length,
)
from keras_lengen.layers.encodings.rope import RoPE
from keras_lengen.types import Array, InputShape, Size, Tensor


class Factors(Optional[tuple[float, ...]]):
    """How many times slower each pair rotates, or `None` for one factor."""

    def __init__(self, *, example: tuple[float, ...]) -> None:
        factor = Number(most=LARGEST_POSITION, above=0)
        super().__init__(Tuple(factor, example=example, variant=True))


@keras.saving.register_keras_serializable(package="keras_lengen")
class LongRoPE(RoPE):
    """Slows each pair of RoPE by its own factor (LongRoPE).

    Pair `m` rotates `short_factors[m]` times slower than in `RoPE` if the
    sequence has at most `original_length` tokens, and `long_factors[m]` times
    slower if it is longer. Rotated queries and keys are multiplied by
    `sqrt(1 + log(scaling_factor) / log(original_length))`, which sharpens the
    softmax, also in short sequences.

    The paper finds the factors of a model by a search. Without such factors,
    all pairs rotate `scaling_factor` times slower in long sequences, which is
    position interpolation and one of the points that the search starts from.

    Stage: `rotate`, `(B, T, H, D)` to the same. No weights.
    Positions: any numbers; only differences matter.

    Args:
        original_length: int, from 2 to `2 ** 24`. Length of the longest
            trained sequence in tokens.
        scaling_factor: float from 1 to `2 ** 24`. Length of the longest
            sequences, relative to `original_length`.
        short_factors: tuple of `R / 2` floats above 0, at most `2 ** 24`, one
            for each of the rotated pairs, fastest first; `None` for 1 each.
        long_factors: tuple of `R / 2` floats above 0, at most `2 ** 24`;
            `None` for `scaling_factor` each.
        max_wavelength: float above 1, at most `2 ** 40`. Base of the geometric
            series of frequencies.
        rotary_fraction: float above 0 and at most 1. Fraction of each head's
            features that are rotated.
        fastest_fraction: float from 0 to 1. Fraction of the pairs that rotate,
            as for `RoPE`.
        layout: str, `"interleaved"` or `"halves"`, as for `RoPE`.
        sampler: `PositionSampler`, or `None` for positions 0, 1, 2, ...

    Raises:
        ValueError: If the rotated width is odd or zero, there are not as many
            factors as pairs, or an argument is out of range.

    Differs from the paper: the first tokens are rotated like all others. The
    released code chooses between the two lists by the length of each call; here
    the length of the whole sequence decides, so that cached keys stay valid.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import LongRoPE
    >>> encoding = LongRoPE(original_length=128, scaling_factor=4)
    >>> encoding(ops.ones((2, 5, 4, 8)), length=300).shape
    TensorShape([2, 5, 4, 8])
    >>> encoding = LongRoPE(
    ...     original_length=128, scaling_factor=4, long_factors=(1, 1.5, 3, 4))
    >>> encoding(ops.ones((2, 5, 4, 8)), length=300).shape
    TensorShape([2, 5, 4, 8])

    Reference: Ding et al., 2024, section 3.
    https://arxiv.org/abs/2402.13753
    """

    original_length: int = argument(OriginalLength(2, example=128))
    scaling_factor: float = argument(ScalingFactor(example=2.0), default=8)
    short_factors: Sequence[float] | None = argument(
        Factors(example=(1.0, 1.5, 3.0, 4.0)), default=None
    )
    long_factors: Sequence[float] | None = argument(
        Factors(example=(1.0, 2.0, 2.5, 16.0)), default=None
    )

    uses_length = True

    def build(
        self, query_shape: InputShape, key_shape: InputShape | None = None
    ) -> None:
        super().build(query_shape, key_shape)
        pairs = self._find_rotary_width(query_shape[-1]) // 2
        for name in ("short_factors", "long_factors"):
            factors = getattr(self, name)
            if factors is not None and len(factors) != pairs:
                raise ValueError(
                    f"{name} must have a number for each of the {pairs} "
                    f"rotated pairs of a head; got {len(factors)}."
                )

    def _find_rates(self, width: int, length: Size) -> Array | Tensor:
        rates = self._find_frequencies(width)
        short, long = (
            rates / np.asarray(default if factors is None else factors)
            for factors, default in (
                (self.short_factors, 1),
                (self.long_factors, self.scaling_factor),
            )
        )
        is_long = find_relative_length(length, self.original_length) > 1
        if not ops.is_tensor(is_long):
            return long if is_long else short
        return ops.where(
            is_long, long.astype("float32"), short.astype("float32")
        )

    def _find_magnitude(self, length: Size) -> float:
        exponent = math.log(self.scaling_factor, self.original_length)
        return math.sqrt(1 + exponent)
