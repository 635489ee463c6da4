"""Rotary position embedding, interpolated for longer contexts."""

import math

import keras
import numpy as np
from keras import ops

from keras_lengen.checks.arguments import (
    LARGEST_POSITION,
    Number,
    Optional,
)
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.ntk_rope import (
    OriginalLength,
    ScalingFactor,
    find_relative_length,
)
from keras_lengen.layers.encodings.randomized import Randomized
from keras_lengen.layers.encodings.rope import RoPE
from keras_lengen.types import Array, Size, Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class YaRN(RoPE):
    """Interpolates the slow pairs of RoPE and keeps the fast ones (YaRN).

    For a context `s` times as long as the trained one, feature pairs with fewer
    than `beta_slow` turns within `original_length` tokens rotate `s` times
    slower. Pairs with more than `beta_fast` turns rotate as in `RoPE`. Between
    the two, the factor of the angle per position decreases linearly from 1 to
    `1 / s` with the index of the pair. Rotated queries and keys are multiplied
    by `0.1 * log(s) + 1`, which sharpens the softmax, or by
    `attention_factor`. In the fixed form, `s = scaling_factor`. In the dynamic
    form, `s` is the length divided by `original_length`, but at least 1.

    Stage: `rotate`, `(B, T, H, D)` to the same. No weights.
    Positions: any numbers; only differences matter.

    Args:
        original_length: int, from 1 to `2 ** 24`. Length of the longest
            trained sequence in tokens.
        scaling_factor: float from 1 to `2 ** 24`, or `None` for the dynamic
            form.
        beta_fast: float above 0, at most `2 ** 24`, and above `beta_slow`.
            Pairs with more turns are unchanged.
        beta_slow: float above 0, at most `2 ** 24`. Pairs with fewer turns
            rotate `s` times slower.
        attention_factor: float above 0, at most `2 ** 24`. Factor of rotated
            queries and keys, as a checkpoint may give it; `None`:
            `0.1 * log(s) + 1`.
        truncate: bool, whether the decrease begins and ends at whole pairs:
            the index of the first one is rounded down, that of the last one
            up.
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

    Differs from the paper: as in the authors' code, the factor is linear in
    the index of the pair. In the paper, it is linear in the number of turns.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import YaRN
    >>> encoding = YaRN(original_length=128, scaling_factor=8)
    >>> encoding(ops.ones((2, 5, 4, 8))).shape
    TensorShape([2, 5, 4, 8])

    Reference: Peng et al., 2024, sections 3.2 to 3.4.
    https://arxiv.org/abs/2309.00071
    """

    original_length: int = argument(OriginalLength(example=128))
    scaling_factor: float | None = argument(
        Optional(ScalingFactor(example=2.0)), default=None
    )
    beta_fast: float = argument(
        Number(most=LARGEST_POSITION, above=0, example=2), default=32
    )
    beta_slow: float = argument(
        Number(most=LARGEST_POSITION, above=0, example=5), default=1
    )
    attention_factor: float | None = argument(
        Optional(Number(most=LARGEST_POSITION, above=0, example=1.5)),
        default=None,
    )
    truncate: bool = argument(default=True)

    uses_length = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.beta_fast > self.beta_slow:
            raise ValueError(
                "beta_fast must be above beta_slow; got "
                f"beta_fast={self.beta_fast!r} and "
                f"beta_slow={self.beta_slow!r}."
            )

    def _find_scale(self, length: Size) -> float | Tensor:
        if self.scaling_factor is not None:
            return self.scaling_factor
        scale = find_relative_length(length, self.original_length)
        return (
            ops.maximum(scale, 1.0) if ops.is_tensor(scale) else max(scale, 1.0)
        )

    def _find_rates(self, width: int, length: Size) -> Array | Tensor:
        rates = self._find_frequencies(width)
        slowed = self._find_slowed(width)
        scale = self._find_scale(length)
        if not ops.is_tensor(scale):
            return rates * (1 - slowed + slowed / scale)
        kept, slowed, rates = (
            ops.convert_to_tensor(each, "float32")
            for each in (1 - slowed, slowed, rates)
        )
        return rates * (kept + slowed / scale)

    def _find_slowed(self, width: int) -> Array:
        """Finds how far each pair is slowed: `(R / 2,)`, from 0 to 1."""
        first = self._find_pair(self.beta_fast, width)
        last = self._find_pair(self.beta_slow, width)
        if last < 0:
            # Even the fastest pair makes fewer than `beta_slow` turns.
            return np.ones(width // 2)
        if self.truncate:
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, width - 1)
        # If no pair lies between the two limits, a step replaces the ramp.
        span = max(last - first, 0) or 0.001
        return np.clip((np.arange(width // 2) - first) / span, 0, 1)

    def _find_pair(self, turns: float, width: int) -> float:
        """Finds the index, a float, of the pair that makes `turns` turns."""
        wavelength = self.original_length / (2 * math.pi * turns)
        return (
            width * math.log(wavelength) / (2 * math.log(self.max_wavelength))
        )

    def _find_magnitude(self, length: Size) -> float | Tensor:
        if self.attention_factor is not None:
            return self.attention_factor
        scale = self._find_scale(length)
        log = ops.log(scale) if ops.is_tensor(scale) else math.log(scale)
        return 0.1 * log + 1.0


@keras.saving.register_keras_serializable(package="keras_lengen")
class RandomizedYaRN(Randomized, YaRN):
    """`YaRN` with randomized positions.

    Takes the arguments of `RandomizedPositions` and `YaRN`. Positions reach
    `max_position` also in short sequences, so there is no dynamic form: without
    a `scaling_factor`, it is `max_position / original_length`, but at least 1.

    Differs from the paper: this is only the encoding. The paper also has a
    curriculum of lengths, which belongs to the training program, such
    as `--curriculum` of `trainers.algorithmic`. The paper's code was not found;
    sorted positions are assumed.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import RandomizedYaRN
    >>> encoding = RandomizedYaRN(max_position=2048, original_length=256)
    >>> encoding(ops.ones((2, 5, 4, 8))).shape
    TensorShape([2, 5, 4, 8])

    Reference: Mehta et al., 2026. https://arxiv.org/abs/2606.23687
    """

    uses_length = False

    def _find_scale(self, length: Size) -> float | Tensor:
        if self.scaling_factor is None:
            return max(self.max_position / self.original_length, 1.0)
        return super()._find_scale(length)
