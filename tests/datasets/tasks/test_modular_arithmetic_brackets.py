"""Modular arithmetic with brackets: the floor, and what products do to it."""

import pytest

from datasets.tasks.modular_arithmetic_brackets import ModularArithmeticBrackets
from tests.datasets.tasks import row
from tests.datasets.tasks.expressions import bracketed, value


def bracketed_expressions(length):
    return {
        tuple(map("01234+-*()".index, text)): probability
        for text, probability in bracketed(length, "+-*").items()
    }


# 0 is likeliest: a factor of 0, 9 of 25 times, or else one in five.
FIVE = (9 / 25 + 1 / 5 + 1 / 5) / 3
# Two of five splits of 9 tokens have an operation of 5 in them.
FIVE_AND_ONE = (1 - (1 - FIVE) * 4 / 5 + 1 / 5 + 1 / 5) / 3

ROW = row.Row(
    published=(11, 5, row.CONTEXT_FREE, 0.2),
    oracle=value,
    outcomes=bracketed_expressions,
    floor_rules=row.constants(5),
    enumerated_lengths=range(1, 10),
    floors={
        4: (1 / 5, 1 / 5),
        5: (FIVE, FIVE),
        9: (2 / 5 * FIVE_AND_ONE + 3 / 5 * FIVE, None),
    },
)


@pytest.mark.product
def test_floor_climbs_towards_a_third():
    # If both operands are 0 with probability p, and other values are alike,
    # the whole is with p**2 / 2 + p / 3 + 1 / 6: as probable at 1 / 3.
    task = ModularArithmeticBrackets()
    floors = [task.floor_accuracy(length) for length in range(1, 501, 11)]
    assert floors == sorted(floors)
    assert task.floor_accuracy(20) == pytest.approx(0.279, abs=1e-3)
    assert task.floor_accuracy(200) == pytest.approx(0.310, abs=1e-3)
    assert task.floor_accuracy(500) < 1 / 3
    assert task.position_only_accuracy(20) == task.floor_accuracy(20)
