"""Bucket sort: its row, and both floors over the tested lengths."""

import numpy as np
import pytest

from datasets.tasks.bucket_sort import BucketSort
from tests.datasets.tasks import row

ROW = row.Row(
    published=(5, 5, row.CONTEXT_SENSITIVE, 0.2),
    oracle=sorted,
    outcomes=row.strings(5),
    floor_rules=row.most_frequent(range(5)),
    output_length=lambda length: length,
)


@pytest.mark.product
def test_floors_over_long_lengths():
    task = BucketSort()
    lengths = range(41, 501)
    floor = np.mean([task.floor_accuracy(length) for length in lengths])
    # 23.7% is the published score of a model without positions.
    assert floor == pytest.approx(0.237, abs=1e-3)
    position_only = [task.position_only_accuracy(length) for length in lengths]
    assert np.mean(position_only) == pytest.approx(0.9, abs=5e-3)
    assert position_only == sorted(position_only)
