"""Binary multiplication: its row, and the floors of long products."""

import math

import pytest

from datasets.tasks.binary_multiplication import BinaryMultiplication
from tests.datasets.tasks import row
from tests.datasets.tasks.bits import (
    laws_of_two_numbers,
    operands,
    terminated,
    threshold_on_ones_or_termination,
    two_numbers,
)

ROW = row.TerminatedRow(
    published=(3, 3, row.CONTEXT_SENSITIVE, 0.5),
    oracle=lambda tokens: terminated(math.prod(operands(tokens)), len(tokens)),
    outcomes=two_numbers,
    floor_rules=threshold_on_ones_or_termination,
    output_length=lambda length: length,
    enumerated_lengths=range(1, 11),
    # Always 2, always 0 2, always 1 2. Then, once, a number of 1, 2 and 3:
    # 1 2, 0 1 2 or 1 1 2. One and the other are right 4 times of 8.
    floors={1: (1, 1), 2: (1 / 2, 1), 3: (1 / 2, 1), 4: (1 / 2, None)},
    laws=laws_of_two_numbers,
)


def test_floors_of_long_products_are_a_half():
    task = BinaryMultiplication()
    assert task.floor_accuracy(500) == pytest.approx(0.5, abs=3e-3)
    assert task.position_only_accuracy(500) == pytest.approx(0.5, abs=4e-3)
