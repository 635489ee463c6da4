"""Reverse string: short cases, far bits, and the published floor."""

import collections

import numpy as np
import pytest

from datasets.tasks.reverse_string import ReverseString
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import (
    CONTEXT_FREE,
    Row,
    most_frequent_symbol,
    strings,
)

ROW = Row(
    published=(2, 2, CONTEXT_FREE, 0.5),
    oracle=lambda bits: list(reversed(bits)),
    outcomes=strings(2),
    floor_rules=most_frequent_symbol,
    output_length=lambda length: length,
)


def test_one_and_two_bits():
    task = ReverseString()
    one = task.sample((1, 2), 100, 1)
    np.testing.assert_array_equal(one["targets"], one["inputs"])
    two = task.sample((1, 2), 100, 2)
    pairs = zip(
        two["inputs"].numpy().tolist(),
        two["targets"].numpy().tolist(),
        strict=True,
    )
    assert {(*inputs, *targets) for inputs, targets in pairs} == {
        (0, 0, 0, 0),
        (0, 1, 1, 0),
        (1, 0, 0, 1),
        (1, 1, 1, 1),
    }


def test_far_bits_are_independent():
    inputs = ReverseString().sample((1, 2), 4000, 500)["inputs"].numpy()
    corners = inputs[:, [0, 1, 250, 498, 499]]
    counts = collections.Counter(map(tuple, corners.tolist()))
    uniform = {
        tuple(int(bit) for bit in f"{code:05b}"): 1 / 32 for code in range(32)
    }
    assert_counts_follow(counts, uniform)


def test_floor_is_the_published_score_without_positions():
    task = ReverseString()
    floors = [task.floor_accuracy(length) for length in range(41, 501)]
    assert np.mean(floors) == pytest.approx(0.528, abs=5e-4)
    assert task.floor_accuracy(1) == pytest.approx(1)
    assert task.floor_accuracy(2) == pytest.approx(3 / 4)
