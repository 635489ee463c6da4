"""Rotary position embedding that groups far positions."""

import keras
from keras import ops

from keras_lengen.checks.arguments import LARGEST_POSITION, Integer
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.near_far_rope import NearFarRoPE
from keras_lengen.types import Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class SelfExtend(NearFarRoPE):
    """Groups far positions, so that distances stay small (Self-Extend).

    Keys nearer than `window` are rotated as in `RoPE`. For all others, the
    distance of a query at position `i` and a key at position `j` becomes
    `i // G - j // G + window - window // G`, with `G = group_size`. Positions
    that are up to about `G * (L - window) + window` apart then have distances
    up to `L`, and a model that was trained with `RoPE` at `L` tokens can read
    sequences of this length without training.

    Stage: `rotate`, `(B, T, H, D)` to `(B, T, H, 2 * D)`: both rotations side
    by side, from which `multiply` computes the products. No weights. Keys in a
    cache are twice as wide, and products take twice the time.
    Positions: any numbers; positions of far keys are rounded down to multiples
    of `group_size`. For causal attention only.

    Args:
        group_size: int, from 1 to `2 ** 24`. Number `G` of neighbouring
            positions in a group.
        window: int, from 1 to `2 ** 24`. Smallest distance of far keys, in
            positions; at most the trained length.
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

    Differs from the released code: the distance decides in every call, also
    while tokens are generated, and positions need not be those of the tokens.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import SelfExtend
    >>> encoding = SelfExtend(group_size=4, window=16)
    >>> query, key = encoding(ops.ones((2, 5, 4, 8)), ops.ones((2, 5, 4, 8)))
    >>> query.shape
    TensorShape([2, 5, 4, 16])

    Reference: Jin et al., 2024, section 3. https://arxiv.org/abs/2401.01325
    """

    group_size: int = argument(
        Integer(most=LARGEST_POSITION, example=3), default=8
    )
    window: int = argument(
        Integer(most=LARGEST_POSITION, example=2), default=1024
    )

    # Groups begin at multiples of `group_size`.
    shift_invariant = False

    @property
    def far_distance(self) -> int:
        return self.window

    def find_far_positions(
        self, query_positions: Tensor, key_positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        shift = self.window - self.window // self.group_size
        return (
            self._find_groups(query_positions) + shift,
            self._find_groups(key_positions),
        )

    def _find_groups(self, positions: Tensor) -> Tensor:
        """Divides positions by `group_size` and rounds down."""
        groups = ops.floor(positions / self.group_size)
        # XLA multiplies by a rounded reciprocal, which may miss a multiple.
        rest = positions - groups * self.group_size
        above = ops.cast(rest >= self.group_size, "float32")
        return groups + above - ops.cast(rest < 0, "float32")
