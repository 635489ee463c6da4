"""Repeat copy: the target is the input."""

import numpy as np

from datasets.tasks.repeat_copy import RepeatCopy
from tests.datasets.tasks.row import (
    CONTEXT_SENSITIVE,
    Row,
    most_frequent_symbol,
    strings,
)

ROW = Row(
    published=(2, 2, CONTEXT_SENSITIVE, 0.5),
    oracle=list,
    outcomes=strings(2),
    floor_rules=most_frequent_symbol,
    output_length=lambda length: length,
)


def test_copies_are_whole():
    batch = RepeatCopy().sample((1, 2), 50, 500)
    np.testing.assert_array_equal(batch["targets"], batch["inputs"])
    assert 0.48 < batch["inputs"].numpy().mean() < 0.52
