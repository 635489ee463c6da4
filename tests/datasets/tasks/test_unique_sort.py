"""Unique sort: the row of unique copy."""

from datasets.tasks.unique_sort import UniqueSort
from tests.datasets.tasks.test_unique_copy import make_row

ROW = make_row(
    150,
    sorted,
    small=make_row(
        4,
        sorted,
        task=UniqueSort(input_vocabulary_size=4, output_vocabulary_size=4),
        enumerated_lengths=range(1, 7),
    ),
)
