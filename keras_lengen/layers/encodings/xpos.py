"""Rotary position embedding with a decay over distance."""

import keras
import numpy as np
from keras import ops

from keras_lengen.arguments import check_number
from keras_lengen.layers.encodings.base import expand_positions
from keras_lengen.layers.encodings.rope import RoPE
from keras_lengen.layers.side_inputs import demand, where_holds

LARGEST_EXPONENTS = {"float16": 8}
"""Largest logarithm of a factor of features, by dtype, for them to stay finite
and precise."""

LARGEST_EXPONENT = 80
"""That of all other dtypes, whose range is at least that of float32."""


@keras.saving.register_keras_serializable(package="keras_lengen")
class XPos(RoPE):
    """Rotates queries and keys, and fades them with their distance (xPos).

    On top of the rotation of `RoPE`, feature pair `m` of a query at position
    `p` is multiplied by `zeta[m] ** (p / scale_base)` and that of a key is
    divided by it, with `zeta[m] = (2 * m + 0.4 * R) / (1.4 * R)`. Their
    product fades like `zeta[m] ** (distance / scale_base)`, fast pairs first.
    Towards later keys it would grow: for causal attention only.

    Stage: `rotate`, `(B, T, H, D)` to the same. No weights.
    Positions: from `-63 * scale_base` to `63 * scale_base`, beyond which the
    fastest decay leaves the range of float32 and bfloat16; with float16
    features a tenth of that. Only differences matter.

    Args:
        scale_base: Distance over which pair `m` fades by `zeta[m]`.
        max_wavelength: Base of the geometric series of frequencies.
        rotary_fraction: Share of each head's features that turn, above 0 and
            at most 1.
        layout: `"interleaved"` or `"halves"`, as for `RoPE`.
        sampler: `PositionSampler`, `None` for 0, 1, 2, ...

    Raises:
        ValueError: If the rotated width is odd or zero, or an argument is out
            of range; in attention, if no causal mask is set. If positions are
            too large: where only a run of a compiled program knows them, that
            ends with an assertion, and under XLA the features are NaN.

    Differs from the paper: positions count from 0, not from the middle of the
    sequence, which leaves the products as they are and keeps cached keys
    valid. The blocks of the paper's attention over long inputs are not part of
    the encoding.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import XPos
    >>> query, key = XPos()(ops.ones((2, 5, 4, 8)), ops.ones((2, 5, 4, 8)))
    >>> query.shape
    TensorShape([2, 5, 4, 8])

    Reference: Sun et al., 2023, section 3. https://arxiv.org/abs/2212.10554
    """

    causal_only = True

    def __init__(self, *, scale_base=512, **kwargs):
        super().__init__(**kwargs)
        self.scale_base = check_number("scale_base", scale_base, above=0)

    def rotate(
        self, query, key, query_positions, key_positions, *, length=None
    ):
        width = self._find_rotary_width(query.shape[-1])
        rates = self._find_rates(width, length)
        query_decay = self._find_decay(query_positions, width, query.dtype)
        key_decay = self._find_decay(key_positions, width, key.dtype)
        query_turn = self._turn(query_positions, rates, query_decay)
        key_turn = self._turn(key_positions, rates, 1 / key_decay)
        return self._apply(query, *query_turn), self._apply(key, *key_turn)

    def _find_decay(self, positions, width, dtype):
        """`zeta ** (p / scale_base)`, float32 `(1 or B, T, R / 2)`."""
        zeta = (np.arange(0, width, 2) + 0.4 * width) / (1.4 * width)
        logarithm = (np.log(zeta) / self.scale_base).astype("float32")
        dtype = keras.backend.standardize_dtype(dtype)
        exponent = LARGEST_EXPONENTS.get(dtype, LARGEST_EXPONENT)
        reach = int(exponent / -logarithm[0])
        positions = expand_positions(positions, 1)
        furthest = ops.max(ops.abs(positions), axis=(-2, -1))
        holds = demand(
            # Positions that are invalid for another reason pass.
            ops.logical_not(furthest > reach),
            "positions reach ",
            furthest,
            f", but XPos with scale_base={self.scale_base} keeps {dtype} "
            f"features finite up to {reach}: raise scale_base.",
        )
        positions = where_holds(holds, positions)
        return ops.exp(ops.multiply(positions, logarithm))

    def get_config(self):
        return {**super().get_config(), "scale_base": self.scale_base}
