"""Duplicate string: the answer is twice as long as the question."""

import numpy as np
import pytest

from datasets.tasks.duplicate_string import DuplicateString
from datasets.tasks.reverse_string import ReverseString
from tests.datasets.tasks.row import (
    CONTEXT_SENSITIVE,
    Row,
    most_frequent_symbol,
    strings,
)

ROW = Row(
    published=(2, 2, CONTEXT_SENSITIVE, 0.5),
    oracle=lambda bits: 2 * bits,
    outcomes=strings(2),
    floor_rules=most_frequent_symbol,
    output_length=lambda length: 2 * length,
)


@pytest.mark.parametrize("length", [1, 2, 501])
def test_both_halves_are_the_input(length):
    batch = DuplicateString().sample((1, 2), 50, length)
    targets = batch["targets"].numpy()
    np.testing.assert_array_equal(targets[:, :length], batch["inputs"])
    np.testing.assert_array_equal(targets[:, length:], batch["inputs"])


def test_total_length_is_thrice_the_input():
    assert DuplicateString().total_length(500) == 1500


def test_floor_is_that_of_any_rearrangement():
    for length in (1, 2, 41, 500):
        floor = DuplicateString().floor_accuracy(length)
        assert floor == ReverseString().floor_accuracy(length)
