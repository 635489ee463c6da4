"""Modular arithmetic: the evaluator and its row."""

import itertools

import pytest
import tensorflow as tf

from datasets.tasks.modular_arithmetic import MINUS, PLUS, TIMES, evaluate
from tests.datasets.tasks import row
from tests.datasets.tasks.expressions import value


def expressions(length):
    alternating = [
        [5, 6, 7] if index % 2 else [0, 1, 2, 3, 4]
        for index in range(length - (length % 2 == 0))
    ]
    return row.equally_likely(itertools.product(*alternating))


ROW = row.Row(
    published=(9, 5, row.REGULAR, 0.2),
    oracle=value,
    outcomes=expressions,
    floor_rules=row.constants(5),
    input_length=lambda length: length if length % 2 else length - 1,
)


@pytest.mark.parametrize("digit", [1, 2, 3, 4])
def test_long_products_do_not_overflow(digit):
    digits = tf.constant([[digit] * 20_001])
    for operator, expected in (
        (TIMES, pow(digit, 20_001, 5)),
        (MINUS, digit * (2 - 20_001) % 5),
    ):
        operators = tf.constant([[PLUS] + [operator] * 20_000])
        assert evaluate(digits, operators).numpy().item() == expected
