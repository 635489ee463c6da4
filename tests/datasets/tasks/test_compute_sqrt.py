"""Square root: both floors, by enumeration and for long numbers."""

import math

import numpy as np
import pytest

from datasets.tasks.compute_sqrt import ComputeSqrt


@pytest.mark.parametrize("length", range(1, 13))
def test_floors_by_enumeration(length):
    roots = [math.isqrt(number) for number in range(1, 2**length)]
    places = range((length + 1) // 2)
    ones = [np.mean([root >> place & 1 for root in roots]) for place in places]
    floor = max(np.mean(ones), 1 - np.mean(ones))
    assert ComputeSqrt().floor_accuracy(length) == pytest.approx(floor)
    by_place = np.mean(np.maximum(ones, np.subtract(1, ones)))
    position_only = ComputeSqrt().position_only_accuracy(length)
    assert position_only == pytest.approx(by_place)


@pytest.mark.parametrize("length", [60, 500, 2000])
def test_floors_of_even_lengths(length):
    # Three of four numbers have the highest bit in their root, five of eight
    # the next one, and so on: 1/4, 1/8, ... above a half, a half in all.
    expected = pytest.approx(1 / 2 + 1 / length, abs=1e-8)
    assert ComputeSqrt().floor_accuracy(length) == expected
    assert ComputeSqrt().position_only_accuracy(length) == expected
