"""Modular arithmetic with brackets: the floor, and what products do to it."""

import pytest

from datasets.tasks.modular_arithmetic_brackets import (
    ModularArithmeticBrackets,
)
from tests.datasets.tasks.expressions import bracketed, value
from tests.datasets.tasks.row import CONTEXT_FREE, Row, constants


def bracketed_expressions(length):
    return {
        tuple(map("01234+-*()".index, text)): probability
        for text, probability in bracketed(length, "+-*").items()
    }


ROW = Row(
    published=(11, 5, CONTEXT_FREE, 0.2),
    oracle=value,
    outcomes=bracketed_expressions,
    floor_rules=constants(5),
    enumerated_lengths=range(1, 10),
)


def test_floor_by_hand():
    task = ModularArithmeticBrackets()
    assert task.floor_accuracy(4) == pytest.approx(1 / 5)
    # 0 is likeliest: a factor of 0, 9 of 25 times, or else one in five.
    five = (9 / 25 + 1 / 5 + 1 / 5) / 3
    assert task.floor_accuracy(5) == pytest.approx(five)
    # Two of five splits of 9 tokens have an operation of 5 in them.
    five_and_one = (1 - (1 - five) * 4 / 5 + 1 / 5 + 1 / 5) / 3
    nine = 2 / 5 * five_and_one + 3 / 5 * five
    assert task.floor_accuracy(9) == pytest.approx(nine)


@pytest.mark.product
def test_floor_climbs_towards_a_third():
    # If both operands are 0 with probability p, and other values are alike,
    # the whole is with p**2 / 2 + p / 3 + 1 / 6: as probable at 1 / 3.
    task = ModularArithmeticBrackets()
    floors = [task.floor_accuracy(length) for length in range(1, 501)]
    assert floors == sorted(floors)
    assert floors[19] == pytest.approx(0.279, abs=1e-3)
    assert floors[199] == pytest.approx(0.310, abs=1e-3)
    assert floors[499] < 1 / 3
    assert task.position_only_accuracy(20) == floors[19]
