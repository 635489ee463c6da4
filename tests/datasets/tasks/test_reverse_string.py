"""Reverse string: its row, and the published floor."""

import numpy as np
import pytest

from datasets.tasks.reverse_string import ReverseString
from tests.datasets.tasks import row

ROW = row.Row(
    published=(2, 2, row.CONTEXT_FREE, 0.5),
    oracle=lambda bits: list(reversed(bits)),
    outcomes=row.strings(2),
    floor_rules=row.most_frequent(range(2)),
    output_length=lambda length: length,
)


def test_floor_is_the_published_score_without_positions():
    task = ReverseString()
    floors = [task.floor_accuracy(length) for length in range(41, 501)]
    assert np.mean(floors) == pytest.approx(0.528, abs=5e-4)
