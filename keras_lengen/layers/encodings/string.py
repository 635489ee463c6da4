"""Rotary position embedding with shifted far positions."""

import math

import keras

from keras_lengen.checks.arguments import (
    Integer,
    Number,
    Optional,
)
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.near_far_rope import NearFarRoPE
from keras_lengen.layers.encodings.ntk_rope import OriginalLength
from keras_lengen.types import Tensor

DEFAULT_WINDOW = 128
"""Window of the paper's experiments, in positions."""


@keras.saving.register_keras_serializable(package="keras_lengen")
class STRING(NearFarRoPE):
    """Shifts far keys to smaller distances, which were trained more (STRING).

    In training, few pairs of tokens are almost as far apart as the sequence is
    long, so a model learns large distances less well. If the distance `i - j`
    of a query at position `i` and a key at position `j` is at least
    `S = shift_fraction * original_length`, rounded down, it becomes
    `i - j - S + window`. Smaller distances do not change, so distances from
    `window` to `S` occur twice. A model that was trained with `RoPE` at
    `original_length` tokens uses its whole length better, without training, and
    sees no new distance in sequences that are up to `S - window` tokens longer.

    Stage: `rotate`, `(B, T, H, D)` to `(B, T, H, 2 * D)`: both rotations side
    by side, from which `multiply` computes the products. No weights. Keys in a
    cache are twice as wide, and products take twice the time.
    Positions: any numbers; only differences matter. For causal attention only.

    Args:
        original_length: int, from 2 to `2 ** 24`. Length of the longest
            trained sequence in tokens.
        shift_fraction: float above 0 and below 1. Smallest distance of far
            keys, as a fraction of `original_length`.
        window: int, at least 1. Distance of the nearest far keys after the
            shift, in positions. `None`: 128, but at most half of the smallest
            distance of far keys.
        max_wavelength: float above 1, at most `2 ** 40`. Base of the geometric
            series of frequencies.
        rotary_fraction: float above 0 and at most 1. Fraction of each head's
            features that are rotated.
        fastest_fraction: float from 0 to 1. Fraction of the pairs that rotate,
            as for `RoPE`.
        layout: str, `"interleaved"` or `"halves"`, as for `RoPE`.
        sampler: `PositionSampler`, or `None` for positions 0, 1, 2, ...

    Raises:
        ValueError: If the rotated width is odd or zero, an argument is out of
            range, or `window` is above the distance of far keys; in attention,
            if neither a causal mask nor an `attention_mask` is given.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import STRING
    >>> encoding = STRING(original_length=128)
    >>> query, key = encoding(ops.ones((2, 5, 4, 8)), ops.ones((2, 5, 4, 8)))
    >>> query.shape
    TensorShape([2, 5, 4, 16])

    Reference: An et al., 2024, section 4. https://arxiv.org/abs/2410.18745
    """

    original_length: int = argument(OriginalLength(2, example=6))
    shift_fraction: float = argument(
        Number(above=0, below=1, example=0.7), default=1 / 3
    )
    window: int | None = argument(Optional(Integer(example=2)), default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._find_window() > self.far_distance:
            raise ValueError(
                f"window={self.window} must be at most {self.far_distance}, "
                "the distance of far keys: "
                f"original_length={self.original_length} times "
                f"shift_fraction={self.shift_fraction}, rounded down."
            )

    @property
    def far_distance(self) -> int:
        # Rounded first, because 0.29 * 100 is less than 29.
        shift = round(self.shift_fraction * self.original_length, 6)
        return max(math.floor(shift), 1)

    def _find_window(self) -> int:
        if self.window is not None:
            return self.window
        return min(DEFAULT_WINDOW, max(self.far_distance // 2, 1))

    def find_far_positions(
        self, query_positions: Tensor, key_positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        shift = self.far_distance - self._find_window()
        return query_positions - shift, key_positions
