"""Modular arithmetic: the evaluator, the distribution and short lengths."""

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
    # 0 is likeliest: a factor of 0, 9 of 25 times, or else one in five.
    floors={3: ((9 / 25 + 1 / 5 + 1 / 5) / 3,) * 2, 499: (0.2, 0.2)},
    laws=(
        row.Law(
            499,
            200,
            lambda inputs, targets: inputs[:, 0::2].ravel(),
            row.uniform(range(5)),
        ),
        row.Law(
            499,
            200,
            lambda inputs, targets: inputs[:, 1::2].ravel(),
            row.uniform((5, 6, 7)),
        ),
    ),
)


def evaluate_one(digits, operators):
    result = evaluate(tf.constant([digits]), tf.constant([[PLUS, *operators]]))
    return result.numpy().item()


@pytest.mark.parametrize("digit", [1, 2, 3, 4])
@pytest.mark.parametrize("count", [250, 20_001])
def test_long_products_do_not_overflow(digit, count):
    product = evaluate_one([digit] * count, [TIMES] * (count - 1))
    assert product == pow(digit, count, 5)
    difference = evaluate_one([digit] * count, [MINUS] * (count - 1))
    assert difference == digit * (2 - count) % 5
