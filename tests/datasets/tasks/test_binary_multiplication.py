"""Binary multiplication: the shortest problems, and its floors."""

import math

import numpy as np
import pytest

from datasets.tasks.binary_multiplication import BinaryMultiplication
from tests.datasets.tasks.bits import (
    operands,
    terminated,
    threshold_on_ones_or_termination,
    two_numbers,
)
from tests.datasets.tasks.row import CONTEXT_SENSITIVE, TerminatedRow

ROW = TerminatedRow(
    published=(3, 3, CONTEXT_SENSITIVE, 0.5),
    oracle=lambda tokens: terminated(math.prod(operands(tokens)), len(tokens)),
    outcomes=two_numbers,
    floor_rules=threshold_on_ones_or_termination,
    output_length=lambda length: length,
    enumerated_lengths=range(1, 11),
)


@pytest.mark.parametrize(
    ("length", "problems"),
    [
        (1, {(0, 2)}),
        (2, {(0, 0, 0, 2), (1, 0, 0, 2), (0, 1, 0, 2)}),
        (3, {(1, 2, 1, 1, 2, 0)}),
    ],
)
def test_shortest_problems(length, problems):
    batch = BinaryMultiplication().sample((1, 2), 100, length)
    rows = np.concatenate([batch["inputs"], batch["targets"]], axis=1)
    assert set(map(tuple, rows.tolist())) == problems


def test_floors_by_hand():
    task = BinaryMultiplication()
    # Always 2, always 0 2, always 1 2.
    for length, floor in ((1, 1), (2, 1 / 2), (3, 1 / 2)):
        assert task.floor_accuracy(length) == floor
        assert task.position_only_accuracy(length) == 1
    # Once, a number of 1, 2 and 3: 1 2, 0 1 2 or 1 1 2. One and the other are
    # right 4 times of 8; the commonest of each place 2 + 2 + 2 times.
    assert task.floor_accuracy(4) == pytest.approx(1 / 2, abs=0.01)
    assert task.position_only_accuracy(4) == pytest.approx(6 / 8, abs=0.02)


def test_floors_of_long_products_are_a_half():
    task = BinaryMultiplication()
    assert task.floor_accuracy(500) == pytest.approx(0.5, abs=3e-3)
    assert task.position_only_accuracy(500) == pytest.approx(0.5, abs=4e-3)
