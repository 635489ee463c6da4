"""Expressions: rows of their tasks, and the values of long ones."""

import collections
import itertools

import pytest
import tensorflow as tf

from datasets.tasks.bracketed_expressions import (
    compute_value_probabilities,
    draw_expressions,
)
from datasets.tasks.modular_arithmetic import MINUS, PLUS, TIMES, evaluate
from tests.datasets.tasks import row
from tests.datasets.tasks.chi_square import assert_counts_follow


def value(tokens):
    return [eval("".join("01234+-*()"[token] for token in tokens)) % 5]


def expressions(length):
    alternating = [
        [5, 6, 7] if index % 2 else [0, 1, 2, 3, 4]
        for index in range(length - (length % 2 == 0))
    ]
    return row.equally_likely(itertools.product(*alternating))


def bracketed(size, operators):
    if size < 5:
        form = ["{}", "-{}", "({})", "(-{})"][size - 1]
        return {form.format(digit): 1 / 5 for digit in range(5)}
    outcomes = {}
    for left in range(1, size - 3):
        firsts = bracketed(left, operators)
        seconds = bracketed(size - 3 - left, operators)
        for parts in itertools.product(firsts, operators, seconds):
            probability = firsts[parts[0]] * seconds[parts[2]]
            probability /= (size - 4) * len(operators)
            outcomes[f"({''.join(parts)})"] = probability
    return outcomes


def bracketed_expressions(length):
    return {
        tuple(map("01234+-*()".index, text)): probability
        for text, probability in bracketed(length, "+-*").items()
    }


def solution(tokens):
    if len(tokens) < 3:
        assert not any(tokens)
        return [0]
    equation = "".join("01234+-()x="[token] for token in tokens)
    left, right = equation.split("=")
    solutions = [
        digit
        for digit in range(5)
        if eval(left.replace("x", str(digit))) % 5 == int(right)
    ]
    assert len(solutions) == 1
    return solutions


def equations(length):
    if length < 3:
        return {(0,) * length: 1.0}
    outcomes = collections.Counter()
    for text, probability in bracketed(length - 2, "+-").items():
        result = eval(text) % 5
        for start in range(len(text)):
            place = start
            while not text[place].isdigit():
                place = (place + 1) % len(text)
            equation = f"{text[:place]}x{text[place + 1 :]}={result}"
            inputs = tuple(map("01234+-()x=".index, equation))
            outcomes[inputs] += probability / len(text)
    return outcomes


ROWS = {
    "modular_arithmetic": row.Row(
        published=(9, 5, row.REGULAR, 0.2),
        oracle=value,
        outcomes=expressions,
        input_length=lambda length: length if length % 2 else length - 1,
    ),
    "modular_arithmetic_brackets": row.Row(
        published=(11, 5, row.CONTEXT_FREE, 0.2),
        oracle=value,
        outcomes=bracketed_expressions,
        enumerated_lengths=range(1, 10),
    ),
    "solve_equation": row.Row(
        published=(11, 5, row.CONTEXT_FREE, 0.2),
        oracle=solution,
        outcomes=equations,
        enumerated_lengths=range(1, 12),
    ),
}


@pytest.mark.parametrize("digit", [1, 2, 3, 4])
def test_long_products_do_not_overflow(digit):
    digits = tf.constant([[digit] * 20_001])
    for operator, expected in (
        (TIMES, pow(digit, 20_001, 5)),
        (MINUS, digit * (2 - 20_001) % 5),
    ):
        operators = tf.constant([[PLUS] + [operator] * 20_000])
        assert evaluate(digits, operators).numpy().item() == expected


@pytest.mark.parametrize("operators", [2, 3])
def test_values_follow_their_probabilities(operators):
    _, values = draw_expressions((1, 2), 5000, 41, operators)
    shares = compute_value_probabilities(41, operators).tolist()
    counts = collections.Counter(values.numpy().ravel().tolist())
    assert_counts_follow(counts, dict(enumerate(shares)))
