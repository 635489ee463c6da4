"""Modular arithmetic: the evaluator, the distribution and short lengths."""

import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf

from datasets.tasks.modular_arithmetic import (
    MINUS,
    PLUS,
    TIMES,
    ModularArithmetic,
    evaluate,
)
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.expressions import value
from tests.datasets.tasks.row import REGULAR, Row, constants, equally_likely


def expressions(length):
    alternating = [
        [5, 6, 7] if index % 2 else [0, 1, 2, 3, 4]
        for index in range(length - (length % 2 == 0))
    ]
    return equally_likely(itertools.product(*alternating))


ROW = Row(
    published=(9, 5, REGULAR, 0.2),
    oracle=value,
    outcomes=expressions,
    floor_rules=constants(5),
    input_length=lambda length: length if length % 2 else length - 1,
)


def evaluate_one(digits, operators):
    result = evaluate(tf.constant([digits]), tf.constant([[PLUS, *operators]]))
    return result.numpy().item()


@pytest.mark.parametrize(
    ("digits", "operators", "expected"),
    [
        ([3], [], 3),
        ([1, 2, 3], [PLUS, TIMES], 2),
        ([1, 2, 3], [TIMES, PLUS], 0),
        ([1, 1, 1], [MINUS, MINUS], 4),
        ([1, 2, 3, 4], [MINUS, TIMES, TIMES], 2),
        ([4, 0, 3, 2], [TIMES, TIMES, MINUS], 3),
        ([0, 1, 0, 4], [MINUS, TIMES, PLUS], 4),
        ([2, 3, 0], [TIMES, MINUS], 1),
    ],
)
def test_evaluate(digits, operators, expected):
    assert evaluate_one(digits, operators) == expected


@pytest.mark.parametrize("digit", [1, 2, 3, 4])
@pytest.mark.parametrize("count", [249, 250, 20_001])
def test_long_products_do_not_overflow(digit, count):
    product = evaluate_one([digit] * count, [TIMES] * (count - 1))
    assert product == pow(digit, count, 5)
    difference = evaluate_one([digit] * count, [MINUS] * (count - 1))
    assert difference == digit * (2 - count) % 5


@pytest.mark.parametrize("length", [1, 2])
def test_shortest_problems_are_one_digit(length):
    batch = ModularArithmetic().sample((1, 2), 10_000, length)
    np.testing.assert_array_equal(batch["inputs"], batch["targets"])
    counts = collections.Counter(batch["inputs"].numpy().ravel().tolist())
    assert_counts_follow(counts, dict.fromkeys(range(5), 1 / 5))


@pytest.mark.parametrize("length", [2, 40, 500])
def test_even_lengths_give_the_problems_one_shorter(length):
    task = ModularArithmetic()
    even = task.sample((1, 2), 64, length)
    odd = task.sample((1, 2), 64, length - 1)
    np.testing.assert_array_equal(even["inputs"], odd["inputs"])
    np.testing.assert_array_equal(even["targets"], odd["targets"])


def test_long_inputs_alternate_uniform_digits_and_operators():
    inputs = ModularArithmetic().sample((1, 2), 200, 499)["inputs"].numpy()
    digits = collections.Counter(inputs[:, 0::2].ravel().tolist())
    operators = collections.Counter(inputs[:, 1::2].ravel().tolist())
    assert_counts_follow(digits, dict.fromkeys(range(5), 1 / 5))
    assert_counts_follow(operators, dict.fromkeys((5, 6, 7), 1 / 3))


def test_values_of_two_digits():
    expected = collections.Counter()
    for left in range(5):
        for right in range(5):
            for result in (left + right, left - right, left * right):
                expected[result % 5] += 1 / 75
    targets = ModularArithmetic().sample((1, 2), 20_000, 3)["targets"]
    counts = collections.Counter(targets.numpy().ravel().tolist())
    assert_counts_follow(counts, expected)
    # 0 is likeliest: a factor of 0, 9 of 25 times, or else one in five.
    assert ModularArithmetic().floor_accuracy(3) == pytest.approx(
        (9 / 25 + 1 / 5 + 1 / 5) / 3
    )


def test_floor_falls_to_chance():
    task = ModularArithmetic()
    floors = [task.floor_accuracy(length) for length in range(3, 500, 2)]
    assert np.diff(floors).max() < 1e-12
    assert floors[0] > floors[1] > 0.23
    assert floors[-1] == pytest.approx(0.2)
