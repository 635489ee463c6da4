"""Unique sort: the row of unique copy, and its floors by hand."""

from datasets.tasks.unique_sort import UniqueSort
from tests.datasets.tasks.test_unique_copy import make_row

ROW = make_row(
    150,
    sorted,
    # All 150 symbols in order are the same in every example.
    floors={1: (1, 1 / 150), 150: (1 / 150, 1), 300: (1 / 150, 1)},
    small=make_row(
        4,
        sorted,
        task=UniqueSort(input_vocabulary_size=4, output_vocabulary_size=4),
        enumerated_lengths=range(1, 7),
    ),
)
