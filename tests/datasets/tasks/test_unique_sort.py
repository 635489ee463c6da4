"""Unique sort: the row of unique copy, and its floors by hand."""

import pytest

from datasets.tasks.unique_sort import UniqueSort
from tests.datasets.tasks.test_unique_copy import make_row

ROW = make_row(150, sorted)
SMALL_ROW = make_row(
    4,
    sorted,
    task=UniqueSort(input_vocabulary_size=4, output_vocabulary_size=4),
    enumerated_lengths=range(1, 7),
)


def test_floors_by_hand():
    task = UniqueSort()
    assert task.position_only_accuracy(1) == pytest.approx(1 / 150)
    # All 150 symbols in order are the same in every example.
    assert task.position_only_accuracy(150) == pytest.approx(1)
    assert task.position_only_accuracy(300) == pytest.approx(1)
    assert task.floor_accuracy(150) == pytest.approx(1 / 150)
