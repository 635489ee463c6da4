"""Confidence intervals of 95%."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_lengen.types import Array

Z = 1.96
"""Quantile 0.975 of the normal distribution, rounded as is usual."""


class Estimate(NamedTuple):
    """A measured value and its 95% confidence interval.

    `low` and `high` are `nan` where no interval is known.
    """

    value: float
    low: float
    high: float


def wilson_interval(share: float, count: float) -> tuple[float, float]:
    """Computes the 95% interval of a share (Wilson, 1927).

    Args:
        share: float, 0 to 1. Successes divided by trials.
        count: float, above 0. Number of independent trials.

    Returns:
        Two floats, 0 to 1.

    Example:

    >>> from keras_lengen.evaluation import wilson_interval
    >>> low, high = wilson_interval(0.5, 100)
    >>> round(low, 3), round(high, 3)
    (0.404, 0.596)
    >>> round(wilson_interval(1.0, 100)[0], 3)
    0.963
    """
    return _wilson_interval(share, count, Z)


def _wilson_interval(
    share: float, count: float, quantile: float
) -> tuple[float, float]:
    square = quantile**2
    center = share + square / (2 * count)
    half = quantile * math.sqrt(
        share * (1 - share) / count + square / (4 * count**2)
    )
    scale = 1 + square / count
    return (
        min(max((center - half) / scale, 0.0), share),
        max(min((center + half) / scale, 1.0), share),
    )


def student_estimate(values: Sequence[float]) -> Estimate:
    """Estimates the mean of normal values and its 95% interval.

    Args:
        values: List of floats, such as one for each seed. No interval is
            known for fewer than two, or if one is not finite.
    """
    mean = float(np.mean(values))
    if len(values) < 2 or not math.isfinite(mean):
        return Estimate(mean, math.nan, math.nan)
    deviation = float(np.std(values, ddof=1))
    quantile = student_quantile(len(values) - 1)
    half = quantile * deviation / math.sqrt(len(values))
    return Estimate(mean, mean - half, mean + half)


def jackknife_estimate(
    value: float, without: Array, count: int, *, is_share: bool
) -> Estimate:
    """Estimates the 95% interval of a statistic of examples in groups.

    Delete-a-group jackknife (Kott, 2001). That of a share is the Wilson
    interval of as many trials as have the same standard error, so that a share
    of 0 or 1 keeps an interval.

    Args:
        value: float. The statistic of all examples.
        without: float `(G,)`. The statistic without each group in turn.
        count: int. Number of examples.
        is_share: bool. Whether the statistic is from 0 to 1 for every example.
    """
    groups = len(without)
    if groups < 2 or not np.all(np.isfinite(without)):
        return Estimate(value, math.nan, math.nan)
    variance = (groups - 1) / groups * np.sum((without - np.mean(without)) ** 2)
    quantile = student_quantile(groups - 1)
    if is_share:
        spread = value * (1 - value)
        trials = spread / variance if spread and variance else count
        return Estimate(
            value, *_wilson_interval(value, max(trials, 1.0), quantile)
        )
    half = quantile * math.sqrt(variance)
    return Estimate(value, value - half, value + half)


def student_quantile(freedom: int, level: float = 0.05) -> float:
    """Returns the number that Student's t exceeds with probability `level`.

    Both signs count: it is the half width of an interval of `1 - level`, in
    standard errors.

    >>> round(student_quantile(9), 3)
    2.262

    Args:
        freedom: int, at least 1. Degrees of freedom.
        level: float, above 0, below 1.
    """
    low, high = 0.0, 1.0
    while _exceeds(high, freedom) > level:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        if _exceeds(middle, freedom) > level:
            low = middle
        else:
            high = middle
    return high


def _exceeds(value: float, freedom: int) -> float:
    """Probability of `|t| > value` (Abramowitz and Stegun, 26.7.3, 26.7.4)."""
    angle = math.atan(value / math.sqrt(freedom))
    cosine, is_odd = math.cos(angle), freedom % 2
    term = cosine if is_odd else 1.0
    total = 0.0
    for number in range(2 + is_odd, freedom + 1, 2):
        total += term
        term *= cosine**2 * (number - 1) / number
    total *= math.sin(angle)
    return 1 - (2 / math.pi * (angle + total) if is_odd else total)
