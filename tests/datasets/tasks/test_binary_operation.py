"""Two binary numbers: where they part, their highest ones, and the answer's."""

import collections

import numpy as np
import pytest

from datasets.tasks import TASKS
from tests.datasets.tasks.chi_square import assert_counts_follow

both_tasks = pytest.mark.parametrize(
    "task", [TASKS["binary_addition"], TASKS["binary_multiplication"]]
)


@both_tasks
def test_separator_is_anywhere_between_two_numbers(task):
    inputs = task.sample((1, 2), 20_000, 40)["inputs"].numpy()
    assert ((inputs == 2).sum(axis=1) == 1).all()
    places = (inputs == 2).argmax(axis=1)
    counts = collections.Counter(places.tolist())
    assert_counts_follow(counts, dict.fromkeys(range(1, 39), 1 / 38))
    ones = np.cumsum(inputs == 1, axis=1)
    first = ones[np.arange(len(ones)), places]
    assert first.min() > 0 and (ones[:, -1] - first).min() > 0


@both_tasks
def test_zeros_at_the_ends_of_long_numbers_are_independent(task):
    inputs = task.sample((1, 2), 4000, 500)["inputs"].numpy()
    counts = collections.Counter()
    for tokens in inputs.tolist():
        place = tokens.index(2)
        if 30 < place < 469:
            zeros = tokens[place - 1 :: -1].index(1), tokens[::-1].index(1)
            low_bits = tokens[0], tokens[place + 1]
            counts[(*np.minimum(zeros, 3).tolist(), *low_bits)] += 1
    share = [1 / 2, 1 / 4, 1 / 8, 1 / 8]
    expected = {
        (*zeros, *low_bits): share[zeros[0]] * share[zeros[1]] / 4
        for zeros in np.ndindex(4, 4)
        for low_bits in np.ndindex(2, 2)
    }
    assert_counts_follow(counts, expected)


@both_tasks
@pytest.mark.parametrize("length", [3, 10, 40])
def test_answer_ends_with_its_highest_one(task, length):
    targets = task.sample((1, 2), 1000, length)["targets"].numpy()
    ends = (targets == 2).argmax(axis=1)
    assert (targets[np.arange(1000), ends - 1] == 1).all()
