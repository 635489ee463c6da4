"""Bucket sort: distribution of the counts, and both of its floors."""

import collections
import math

import numpy as np
import pytest

from datasets.tasks.bucket_sort import BucketSort
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import (
    CONTEXT_SENSITIVE,
    Row,
    most_frequent_symbol,
    strings,
)

ROW = Row(
    published=(5, 5, CONTEXT_SENSITIVE, 0.2),
    oracle=sorted,
    outcomes=strings(5),
    floor_rules=most_frequent_symbol,
    output_length=lambda length: length,
)


def test_counts_of_symbols_are_multinomial():
    targets = BucketSort().sample((1, 2), 20_000, 4)["targets"].numpy()
    counts = collections.Counter(map(tuple, targets.tolist()))
    expected = {}
    for code in range(5**4):
        ordered = tuple(sorted(code // 5**place % 5 for place in range(4)))
        repeats = collections.Counter(ordered).values()
        orders = math.factorial(4) // math.prod(map(math.factorial, repeats))
        expected[ordered] = orders / 5**4
    assert_counts_follow(counts, expected)


def test_long_strings_are_uniform_and_sorted():
    batch = BucketSort().sample((1, 2), 200, 500)
    counts = collections.Counter(batch["inputs"].numpy().ravel().tolist())
    assert_counts_follow(counts, dict.fromkeys(range(5), 1 / 5))
    assert (np.diff(batch["targets"].numpy(), axis=1) >= 0).all()


def test_floors_by_hand():
    task = BucketSort()
    assert task.floor_accuracy(1) == pytest.approx(1)
    assert task.position_only_accuracy(1) == pytest.approx(1 / 5)
    # Two equal symbols, one time in five, are both hit; else one of two is.
    assert task.floor_accuracy(2) == pytest.approx(1 / 5 + 4 / 5 / 2)
    # The smaller of two is 0 nine times in 25, and so is the larger 4.
    assert task.position_only_accuracy(2) == pytest.approx(9 / 25)


def test_floors_over_long_lengths():
    task = BucketSort()
    lengths = range(41, 501)
    floor = np.mean([task.floor_accuracy(length) for length in lengths])
    # 23.7% is the published score of a model without positions.
    assert floor == pytest.approx(0.237, abs=1e-3)
    position_only = [task.position_only_accuracy(length) for length in lengths]
    assert np.mean(position_only) == pytest.approx(0.9, abs=5e-3)
    assert position_only == sorted(position_only)
