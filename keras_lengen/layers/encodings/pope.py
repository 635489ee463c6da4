"""Polar coordinate position embedding."""

import math
from typing import Any

import keras
from keras import ops

from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.angles import compute_angles
from keras_lengen.layers.encodings.base import AttentionSpec
from keras_lengen.layers.encodings.kerple import Clip
from keras_lengen.layers.encodings.rotary import RotaryEncoding
from keras_lengen.layers.encodings.sinusoidal_encoding import (
    MaxWavelength,
    frequencies,
)
from keras_lengen.types import InputShape, Positions, Size, Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class PoPE(RotaryEncoding):
    """Represents content by magnitudes and positions by angles (PoPE).

    Each feature becomes a complex number: its length is the softplus of the
    feature, its angle depends on the position only. The product of a query `q`
    at position `i` and a key `k` at position `j` is
    `sum_c softplus(q[c]) * softplus(k[c]) * cos((j - i) * w[c] + delta[h, c])`
    with `w[c] = max_wavelength ** (-c / D)` for the features `c` from 0 to
    `D - 1`. In `RoPE`, the angle of a pair of features also depends on their
    values, so that content and position are mixed.

    Stage: `rotate`, `(B, T, H, D)` to `(B, T, H, 2 * D)`: the real parts of all
    features, then the imaginary parts. Scores are still divided by `sqrt(D)`.
    Keys in a cache are twice as wide, and products take twice the time.
    Weight: the phase `delta`, float32 `(H, D)`, from `-2 * pi` to 0, at first
    0. Every layer of a model has its own.
    Positions: any numbers; only differences matter.

    Args:
        max_wavelength: float above 1, at most `2 ** 40`. Base of the geometric
            series of frequencies.
        sampler: `PositionSampler`, or `None` for positions 0, 1, 2, ...

    Raises:
        ValueError: If an argument is out of range.

    Differs from the paper: the phase is clipped after each training step and
    not in the forward pass, where its gradient would vanish beyond the limits.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import PoPE
    >>> query, key = PoPE()(ops.ones((2, 5, 4, 8)), ops.ones((2, 5, 4, 8)))
    >>> query.shape
    TensorShape([2, 5, 4, 16])

    Reference: Gopalakrishnan et al., 2025. https://arxiv.org/abs/2509.10534
    """

    max_wavelength: float = argument(MaxWavelength(), default=10000)

    share_layers = False
    shift_invariant = True
    num_rotations = 2

    def build(
        self, query_shape: InputShape, key_shape: InputShape | None = None
    ) -> None:
        super().build(query_shape, key_shape)
        heads = query_shape[-2] if len(query_shape) == 4 else 1
        self.phase = self.add_weight(
            name="phase",
            shape=(heads, query_shape[-1]),
            initializer="zeros",
            constraint=Clip(lowest=-2 * math.pi, highest=0.0),
            autocast=False,
        )

    def prepare(
        self,
        query_positions: Positions,
        key_positions: Positions,
        spec: AttentionSpec,
    ) -> Any:
        """Computes cosines and sines of the queries and of the keys."""
        # All D frequencies, where a rotation of D features has D / 2.
        rates = frequencies(2 * spec.width, self.max_wavelength)

        def turn(positions: Tensor) -> tuple[Tensor, Tensor]:
            # (T, 1, D) or (B, T, 1, D).
            angles = ops.expand_dims(compute_angles(positions, rates), -2)
            return ops.cos(angles), ops.sin(angles)

        query_turn = turn(query_positions)
        if key_positions is query_positions:
            return query_turn, query_turn
        return query_turn, turn(key_positions)

    def rotate(
        self,
        query: Tensor,
        key: Tensor,
        query_positions: Positions,
        key_positions: Positions,
        *,
        length: Size | None = None,
        prepared: Any = None,
    ) -> tuple[Tensor, Tensor]:
        if prepared is None:
            spec = AttentionSpec.of(query)
            prepared = self.prepare(query_positions, key_positions, spec)
        (cosines, sines), key_turn = prepared
        # The phase belongs to the key's angle. It is subtracted from that of
        # the query instead, because keys may have fewer heads.
        phase = ops.cast(self.phase, "float32")
        cosine, sine = ops.cos(phase), ops.sin(phase)
        query_turn = (
            cosines * cosine + sines * sine,
            sines * cosine - cosines * sine,
        )
        return _apply(query, query_turn), _apply(key, key_turn)


def _apply(features: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Multiplies the softplus of features by cosines and sines."""
    lengths = ops.softplus(features)
    return ops.concatenate(
        [lengths * ops.cast(each, features.dtype) for each in turn], axis=-1
    )
