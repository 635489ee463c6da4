"""Angles of positions, without whole turns."""

import math

import numpy as np
from keras import ops

from keras_lengen.checks.guards import is_integer
from keras_lengen.layers.encodings.base import expand_positions
from keras_lengen.types import Array, Tensor

SPLIT = 4096
"""Unit into which positions and rates are split. The product of two numbers of
12 bits has at most the 24 bits of float32."""


def compute_angles(positions: Tensor, rates: Array | Tensor) -> Tensor:
    """Multiplies positions by rates, and subtracts whole turns.

    float32 would round the product: at position `2 ** 24`, by half a radian.
    The parts of a product that can be more than a turn are therefore computed
    from numbers of 12 bits, which is exact, and whole turns are subtracted
    before the parts are added. The error is below 1e-6 for all positions up to
    `2 ** 24`, unless the rates themselves are rounded.

    Args:
        positions: Integer or float tensor `(T,)` or `(B, T)`.
        rates: Radians per position: a float64 array `(R,)`, or a float32 tensor
            `(R,)` or `(B, 1, R)`, whose numbers count as exact.

    Returns:
        float32 `(T, R)` or `(B, T, R)`, at most three turns in either
        direction; NaN for invalid positions.
    """
    whole = is_integer(positions)
    positions = expand_positions(positions, 1)
    # Position = high * SPLIT + low + fraction.
    high = ops.round(positions / SPLIT)
    low = positions - high * SPLIT
    turns = rates / (2 * math.pi)
    fractions = 0.0
    if not whole:
        rest = low - ops.round(low)
        low = low - rest
        fractions = rest * ops.convert_to_tensor(turns, "float32")
    terms = []
    for part, per_part in ((low, turns), (high, SPLIT * turns)):
        coarse, fine = _split(per_part)
        product = part * coarse
        terms.append((product - ops.round(product)) + part * fine)
    return 2 * math.pi * (terms[0] + terms[1] + fractions)


def _split(turns: Array | Tensor) -> tuple[Tensor, Tensor]:
    """Splits fractions of a turn into multiples of `1 / SPLIT` and a rest."""
    xp = np if isinstance(turns, np.ndarray) else ops
    turns = turns - xp.round(turns)
    coarse = xp.round(turns * SPLIT) / SPLIT
    return tuple(
        ops.convert_to_tensor(each, "float32")
        for each in (coarse, turns - coarse)
    )
