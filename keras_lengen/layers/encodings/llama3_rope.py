"""Rotary position embedding with the frequencies of Llama 3.1."""

import math

import keras
import numpy as np

from keras_lengen.checks.arguments import LARGEST_POSITION, Number
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.ntk_rope import (
    OriginalLength,
    ScalingFactor,
)
from keras_lengen.layers.encodings.rope import RoPE
from keras_lengen.types import Array, Size


@keras.saving.register_keras_serializable(package="keras_lengen")
class Llama3RoPE(RoPE):
    """Slows the slow pairs of RoPE by a fixed factor (Llama 3.1).

    Feature pairs with fewer than `low_frequency_factor` turns within
    `original_length` tokens rotate `scaling_factor` times slower than in
    `RoPE`. Pairs with more than `high_frequency_factor` turns rotate as in
    `RoPE`. Between the two, the factor of the angle per position rises
    linearly from `1 / scaling_factor` to 1 with the number of turns. The
    defaults are those of Llama 3.1.

    Unlike in `YaRN`, the transition is linear in the number of turns, not in
    the index of the pair, and queries and keys are not multiplied.

    Stage: `rotate`, `(B, T, H, D)` to the same. No weights.
    Positions: any numbers; only differences matter.

    Args:
        scaling_factor: float from 1 to `2 ** 24`. Factor by which the slow
            pairs rotate slower.
        original_length: int, from 1 to `2 ** 24`. Length of the longest
            trained sequence in tokens.
        low_frequency_factor: float above 0, at most `2 ** 24`, and below
            `high_frequency_factor`. Pairs with at most this number of turns
            rotate slower by the full factor.
        high_frequency_factor: float above 0, at most `2 ** 24`. Pairs with at
            least this number of turns are unchanged.
        max_wavelength: float above 1, at most `2 ** 40`. Base of the geometric
            series of frequencies.
        rotary_fraction: float above 0 and at most 1. Fraction of each head's
            features that are rotated.
        fastest_fraction: float from 0 to 1. Fraction of the pairs that rotate,
            as for `RoPE`.
        layout: str, `"interleaved"` or `"halves"`, as for `RoPE`.
        sampler: `PositionSampler`, or `None` for positions 0, 1, 2, ...

    Raises:
        ValueError: If the rotated width is odd or zero, or an argument is out
            of range.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import Llama3RoPE
    >>> encoding = Llama3RoPE(original_length=128, max_wavelength=10000)
    >>> encoding(ops.ones((2, 5, 4, 8))).shape
    TensorShape([2, 5, 4, 8])

    Reference: Grattafiori et al., 2024, section 3.2, for the base; the formula
    is that of the models' configuration, `rope_type="llama3"`.
    https://arxiv.org/abs/2407.21783
    """

    max_wavelength: float = argument(default=500000)
    scaling_factor: float = argument(ScalingFactor(example=2.0), default=8)
    original_length: int = argument(OriginalLength(example=128), default=8192)
    low_frequency_factor: float = argument(
        Number(most=LARGEST_POSITION, above=0, example=3), default=1
    )
    high_frequency_factor: float = argument(
        Number(most=LARGEST_POSITION, above=0, example=400), default=4
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.high_frequency_factor > self.low_frequency_factor:
            raise ValueError(
                "high_frequency_factor must be above low_frequency_factor; got "
                f"high_frequency_factor={self.high_frequency_factor!r} and "
                f"low_frequency_factor={self.low_frequency_factor!r}."
            )

    def _find_rates(self, width: int, length: Size) -> Array:
        rates = self._find_frequencies(width)
        turns = self.original_length / (2 * math.pi) * rates
        low, high = self.low_frequency_factor, self.high_frequency_factor
        kept = np.clip((turns - low) / (high - low), 0, 1)
        factors = kept + (1 - kept) / self.scaling_factor
        slowed: Array = rates * factors
        return slowed
