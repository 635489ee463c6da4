"""Rotary position embedding with a decay over the distance."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_lengen.checks.arguments import LARGEST_POSITION, Number
from keras_lengen.checks.constructors import argument
from keras_lengen.checks.guards import guard
from keras_lengen.layers.encodings.base import AttentionSpec, expand_positions
from keras_lengen.layers.encodings.rope import RoPE
from keras_lengen.types import Positions, Tensor

LARGEST_EXPONENTS = {"float16": 8}
"""Largest natural logarithm of a decay factor, by dtype of the features, with
which the features stay finite and precise."""

LARGEST_EXPONENT = 80
"""The same for all other dtypes, whose range is at least that of float32."""


@keras.saving.register_keras_serializable(package="keras_lengen")
class XPos(RoPE):
    """Rotates queries and keys; their product decays with distance (xPos).

    In addition to the rotation of `RoPE`, feature pair `m` of a query at
    position `p` is multiplied by `zeta[m] ** (p / scale_base)`, and pair `m`
    of a key is divided by the same factor at its position, with
    `zeta[m] = (2 * m + 0.4 * R) / (1.4 * R)`. The product of a query and a key
    therefore decays as `zeta[m] ** (distance / scale_base)`, fastest for the
    pairs that rotate fastest. For keys at larger positions it would grow, so
    the encoding is for causal attention only.

    Stage: `rotate`, `(B, T, H, D)` to the same. No weights.
    Positions: from `-63 * scale_base` to `63 * scale_base`; beyond that, the
    fastest decay leaves the range of float32 and bfloat16. With float16
    features, the limits are a tenth of these. Only differences matter. No
    token may have a larger position than a later one.

    Args:
        scale_base: float above 0, at most `2 ** 24`, in positions. Distance
            over which the product of pair `m` decays by the factor `zeta[m]`.
        max_wavelength: float above 1, at most `2 ** 40`. Base of the geometric
            series of frequencies.
        rotary_fraction: float above 0 and at most 1. Fraction of each head's
            features that are rotated and decay.
        fastest_fraction: float from 0 to 1. Fraction of the pairs that rotate,
            as for `RoPE`. All pairs decay.
        layout: str, `"interleaved"` or `"halves"`, as for `RoPE`.
        sampler: `PositionSampler`, or `None` for positions 0, 1, 2, ...

    Raises:
        ValueError: If the rotated width is odd or zero, an argument is out of
            range, or the sampler does not keep the order of the tokens; in
            attention, if neither a causal mask nor an `attention_mask` is
            given; if positions are too large, or decrease in attention without
            an `attention_mask`. If positions are known only when a compiled
            program runs, the program ends with an assertion; under XLA, the
            features or the output of attention become NaN.

    Differs from the paper: positions count from 0, not from the middle of the
    sequence; this does not change the products of queries and keys, and cached
    keys stay valid. The blockwise attention of the paper for long inputs is
    not part of the encoding.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import XPos
    >>> encoding = XPos(scale_base=64)
    >>> query, key = encoding(ops.ones((2, 5, 4, 8)), ops.ones((2, 5, 4, 8)))
    >>> query.shape
    TensorShape([2, 5, 4, 8])

    Reference: Sun et al., 2023, section 3. https://arxiv.org/abs/2212.10554
    """

    scale_base: float = argument(
        Number(most=LARGEST_POSITION, above=0, example=64), default=512
    )

    causal_only = True
    requires_increasing_positions = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sampler.is_increasing:
            raise ValueError(
                f"sampler={type(self.sampler).__name__} may give earlier "
                "tokens larger positions, with which the products of XPos "
                "grow instead of decaying: choose another encoding, such as "
                "RoPE or ClippedBias."
            )

    def prepare(
        self,
        query_positions: Positions,
        key_positions: Positions,
        spec: AttentionSpec,
    ) -> Any:
        width = self._find_rotary_width(spec.width)
        rates = self._double(self._find_rates(width, spec.length))
        query_decay = self._find_decay(query_positions, width, spec.dtype)
        key_decay = self._find_decay(key_positions, width, spec.dtype)
        return (
            self._turn(query_positions, rates, spec, query_decay),
            self._turn(key_positions, rates, spec, 1 / key_decay),
        )

    def _find_decay(self, positions: Tensor, width: int, dtype: str) -> Tensor:
        """Computes `zeta ** (p / scale_base)` for all positions and features.

        Args:
            positions: Integer or float tensor `(T,)` or `(B, T)`.
            width: int, number `R` of rotated features.
            dtype: str, dtype of the features, which limits the exponent.

        Returns:
            float32 `(T, R)` or `(B, T, R)`.
        """
        zeta = (np.arange(0, width, 2) + 0.4 * width) / (1.4 * width)
        logarithm = (np.log(zeta) / self.scale_base).astype("float32")
        exponent = LARGEST_EXPONENTS.get(dtype, LARGEST_EXPONENT)
        reach = int(exponent / -logarithm[0])
        positions = expand_positions(positions, 1)
        furthest = ops.max(ops.abs(positions), axis=(-2, -1), initial=0)
        positions = guard(
            positions,
            # NaN, a position invalid for another reason, passes.
            ops.logical_not(furthest > reach),
            "positions reach ",
            furthest,
            f", but XPos with scale_base={self.scale_base} keeps {dtype} "
            f"features finite up to {reach}: raise scale_base.",
        )
        rates = ops.convert_to_tensor(self._double(logarithm))
        return ops.exp(positions * rates)
