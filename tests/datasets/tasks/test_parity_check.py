"""Parity check: distribution of the number of ones and of the answer."""

import collections
import math

import pytest

from datasets.tasks.parity_check import ParityCheck
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import REGULAR, Row, constants, strings

ROW = Row(
    published=(2, 2, REGULAR, 0.5),
    oracle=lambda bits: [bits.count(1) % 2],
    outcomes=strings(2),
    floor_rules=constants(2),
)


@pytest.mark.parametrize("length", [1, 2, 40])
def test_number_of_ones_is_binomial(length):
    inputs = ParityCheck().sample((1, 2), 20_000, length)["inputs"].numpy()
    # Counts beyond 12 from the middle are too rare for the test: clip them.
    low, high = max(0, length // 2 - 12), min(length, length // 2 + 12)
    probabilities = collections.Counter()
    for ones in range(length + 1):
        clipped = min(max(ones, low), high)
        probabilities[clipped] += math.comb(length, ones) / 2**length
    ones = inputs.sum(axis=1).clip(low, high)
    assert_counts_follow(collections.Counter(ones.tolist()), probabilities)


@pytest.mark.parametrize("length", [1, 2, 500])
def test_answers_are_balanced(length):
    targets = ParityCheck().sample((1, 2), 10_000, length)["targets"]
    counts = collections.Counter(targets.numpy().ravel().tolist())
    assert_counts_follow(counts, {0: 0.5, 1: 0.5})


def test_floor_is_a_coin_at_every_length():
    task = ParityCheck()
    assert {task.floor_accuracy(length) for length in range(1, 501)} == {0.5}
