"""Binary addition: the shortest problems, and its floors."""

import numpy as np
import pytest

from datasets.tasks.binary_addition import BinaryAddition
from tests.datasets.tasks.bits import (
    operands,
    terminated,
    threshold_on_ones_or_termination,
    two_numbers,
)
from tests.datasets.tasks.row import CONTEXT_SENSITIVE, TerminatedRow

ROW = TerminatedRow(
    published=(3, 3, CONTEXT_SENSITIVE, 0.5),
    oracle=lambda tokens: terminated(sum(operands(tokens)), len(tokens) + 1),
    outcomes=two_numbers,
    floor_rules=threshold_on_ones_or_termination,
    output_length=lambda length: length + 1,
    enumerated_lengths=range(1, 11),
)


@pytest.mark.parametrize(
    ("length", "problems"),
    [
        (1, {(0, 0, 2)}),
        (2, {(0, 0, 0, 2, 0), (1, 0, 1, 2, 0), (0, 1, 0, 1, 2)}),
        (3, {(1, 2, 1, 0, 1, 2, 0)}),
    ],
)
def test_shortest_problems(length, problems):
    batch = BinaryAddition().sample((1, 2), 100, length)
    rows = np.concatenate([batch["inputs"], batch["targets"]], axis=1)
    assert set(map(tuple, rows.tolist())) == problems


def test_floors_by_hand():
    task = BinaryAddition()
    # Always 0 2, and always 0 1 2.
    assert (task.floor_accuracy(1), task.position_only_accuracy(1)) == (0.5, 1)
    assert task.floor_accuracy(3) == pytest.approx(1 / 3)
    assert task.position_only_accuracy(3) == 1
    # Two ones sum to 0 1 2 or 1 1 2, and 1 is three of these; three ones to
    # 0 0 1 2, and 0 is two of those.
    assert task.floor_accuracy(4) == pytest.approx(0.5, abs=0.01)


def test_counting_tells_more_than_positions_of_long_sums():
    # The more ones in the numbers, the more in the sum.
    task = BinaryAddition()
    floors = [task.floor_accuracy(length) for length in (40, 100, 500)]
    assert floors == sorted(floors, reverse=True)
    assert floors[-1] > 0.505 > task.position_only_accuracy(40)
