"""Even pairs: edge cases and values worked out by hand."""

import collections
import itertools

import numpy as np
import pytest

from datasets.tasks.even_pairs import EvenPairs
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import REGULAR, Row, strings


def unequal_pairs(bits):
    return [sum(a != b for a, b in itertools.pairwise(bits)) % 2]


def unequal_ends_if_balanced(inputs):
    length = inputs.shape[1]
    imbalance = np.abs(2 * inputs.sum(axis=1, keepdims=True) - length)
    return [imbalance <= limit for limit in range(-1, length + 1)]


ROW = Row(
    published=(2, 2, REGULAR, 0.5),
    oracle=unequal_pairs,
    outcomes=strings(2),
    floor_rules=unequal_ends_if_balanced,
)


def test_one_bit_has_no_pairs():
    batch = EvenPairs().sample((1, 2), 1000, 1)
    assert set(batch["inputs"].numpy().ravel()) == {0, 1}
    assert set(batch["targets"].numpy().ravel()) == {0}


@pytest.mark.parametrize("length", [2, 3, 500])
def test_answers_are_balanced(length):
    targets = EvenPairs().sample((1, 2), 10_000, length)["targets"]
    counts = collections.Counter(targets.numpy().ravel().tolist())
    assert_counts_follow(counts, {0: 0.5, 1: 0.5})


def test_floor_by_hand():
    task = EvenPairs()
    # Of two bits, one 1 means unequal ends. Of three, one or two 1s (3/4 of
    # the strings) mean unequal ends in two cases of three. Of four, ends are
    # equal with chances 1, 1/2 and 1/3 for 0, 1 and 2 ones.
    assert task.floor_accuracy(2) == pytest.approx(1)
    assert task.floor_accuracy(3) == pytest.approx(1 / 4 + 3 / 4 * 2 / 3)
    assert task.floor_accuracy(4) == pytest.approx(
        2 / 16 + 8 / 16 * 1 / 2 + 6 / 16 * 2 / 3
    )
    assert task.position_only_accuracy(1) == 1
    assert task.position_only_accuracy(2) == 0.5
