"""Odds first: which half comes first, and the shortest strings."""

import numpy as np
import pytest

from datasets.tasks.odds_first import OddsFirst
from tests.datasets.tasks.row import (
    CONTEXT_SENSITIVE,
    Row,
    most_frequent_symbol,
    strings,
)


def odd_indices_first(bits):
    order = sorted(range(len(bits)), key=lambda index: (index % 2 == 0, index))
    return [bits[index] for index in order]


ROW = Row(
    published=(2, 2, CONTEXT_SENSITIVE, 0.5),
    oracle=odd_indices_first,
    outcomes=strings(2),
    floor_rules=most_frequent_symbol,
    output_length=lambda length: length,
)


@pytest.mark.parametrize(
    ("length", "order"),
    [
        (1, [0]),
        (2, [1, 0]),
        (3, [1, 0, 2]),
        (4, [1, 3, 0, 2]),
        (7, [1, 3, 5, 0, 2, 4, 6]),
    ],
)
def test_indices_count_from_zero(length, order):
    batch = OddsFirst().sample((1, 2), 200, length)
    expected = batch["inputs"].numpy()[:, order]
    np.testing.assert_array_equal(batch["targets"], expected)
    if length > 1:
        evens_first = batch["inputs"].numpy()[:, order[::-1]]
        assert (batch["targets"].numpy() != evens_first).any()
