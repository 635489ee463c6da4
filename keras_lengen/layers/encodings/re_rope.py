"""Rotary position embedding with a largest distance."""

import keras

from keras_lengen.checks.arguments import LARGEST_POSITION, Integer
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.near_far_rope import NearFarRoPE
from keras_lengen.types import Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class ReRoPE(NearFarRoPE):
    """Treats all far keys as if they were `window` positions away (ReRoPE).

    The distance of a query at position `i` and a key at position `j` is
    `min(i - j, window)`: near keys are rotated as in `RoPE`, and the order of
    far keys has no effect. A model that was trained with `RoPE` sees no
    distance above `window`, however long the sequence is.

    Stage: `rotate`, `(B, T, H, D)` to `(B, T, H, 2 * D)`: both rotations side
    by side, from which `multiply` computes the products. No weights. Keys in a
    cache are twice as wide, and products take twice the time.
    Positions: any numbers; only differences matter. For causal attention only.

    Args:
        window: int, from 1 to `2 ** 24`. Largest distance, in positions. At
            most the trained length.
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
            of range; in attention, if neither a causal mask nor an
            `attention_mask` is given.

    Differs from the released code: queries are not multiplied by the logarithm
    of their position; `score_factor="log_length"` of `MultiHeadAttention` is a
    similar factor.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import ReRoPE
    >>> encoding = ReRoPE(window=16)
    >>> query, key = encoding(ops.ones((2, 5, 4, 8)), ops.ones((2, 5, 4, 8)))
    >>> query.shape
    TensorShape([2, 5, 4, 16])

    Reference: Su, 2023. https://github.com/bojone/rerope
    """

    window: int = argument(
        Integer(most=LARGEST_POSITION, example=2), default=512
    )

    @property
    def far_distance(self) -> int:
        return self.window

    def find_far_positions(
        self, query_positions: Tensor, key_positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        # Sums, so that invalid positions stay NaN.
        return 0 * query_positions + self.window, 0 * key_positions
