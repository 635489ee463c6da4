"""Square root: both floors, by enumeration and for long numbers."""

import math

import numpy as np
import pytest

from datasets.tasks.compute_sqrt import ComputeSqrt
from tests.datasets.tasks import row
from tests.datasets.tasks.bits import from_bits, to_bits


def root(tokens):
    number = from_bits(tokens[::-1])
    return to_bits(math.isqrt(number), (len(tokens) + 1) // 2)[::-1]


def numbers_from_one(length):
    return row.equally_likely(
        tuple(to_bits(number, length)[::-1]) for number in range(1, 2**length)
    )


ROW = row.Row(
    published=(2, 2, row.CONTEXT_SENSITIVE, 0.5),
    oracle=root,
    outcomes=numbers_from_one,
    floor_rules=row.constants(2),
    output_length=lambda length: (length + 1) // 2,
    enumerated_lengths=range(1, 9),
)


@pytest.mark.parametrize("length", [11, 12])
def test_floors_by_enumeration(length):
    roots = [math.isqrt(number) for number in range(1, 2**length)]
    ones = np.mean([to_bits(root, (length + 1) // 2) for root in roots], axis=0)
    floor = max(np.mean(ones), 1 - np.mean(ones))
    assert ComputeSqrt().floor_accuracy(length) == pytest.approx(floor)
    by_place = np.mean(np.maximum(ones, 1 - ones))
    position_only = ComputeSqrt().position_only_accuracy(length)
    assert position_only == pytest.approx(by_place)


@pytest.mark.parametrize("length", [60, 500, 2000])
def test_floors_of_even_lengths(length):
    # Three of four numbers have the highest bit in their root, five of eight
    # the next one, and so on: 1/4, 1/8, ... above a half, a half in all.
    expected = pytest.approx(1 / 2 + 1 / length, abs=1e-8)
    assert ComputeSqrt().floor_accuracy(length) == expected
    assert ComputeSqrt().position_only_accuracy(length) == expected
