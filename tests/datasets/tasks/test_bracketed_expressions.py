"""Bracketed expressions: grammar, values and their distribution."""

import collections
import functools
import itertools

import numpy as np
import pytest

from datasets.tasks.bracketed_expressions import (
    compute_value_probabilities,
    draw_expressions,
)
from tests.datasets.tasks import row
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.test_modular_arithmetic_brackets import ROW

both_alphabets = pytest.mark.parametrize("operators", ["+-", "+-*"])


@functools.cache
def draw(batch_size, length, operators):
    tokens, values = draw_expressions(
        (1, 2), batch_size, length, len(operators)
    )
    texts = [
        "".join("01234+-*()"[token] for token in row)
        for row in tokens.numpy().tolist()
    ]
    return texts, values.numpy().ravel().tolist()


def parse(text):
    """Reads the expression that a text starts with.

    Returns its value, its size, and the operations in it: the size of each,
    that of its first operand, and its operator.
    """
    if text[0] == "-":
        return -int(text[1]), 2, []
    if text[0] != "(":
        return int(text[0]), 1, []
    first, size, operations = parse(text[1:])
    operator = text[1 + size]
    if operator == ")":
        assert size < 3
        return first, size + 2, []
    second, second_size, others = parse(text[2 + size :])
    whole = size + second_size + 3
    assert text[whole - 1] == ")"
    results = {"+": first + second, "-": first - second, "*": first * second}
    operation = (whole, size, operator)
    return results[operator] % 5, whole, [operation, *operations, *others]


@both_alphabets
@pytest.mark.parametrize("length", [10, 30, 100, 500])
def test_grammar_and_values(length, operators):
    for text, value in zip(*draw(20, length, operators), strict=True):
        parsed, size, operations = parse(text)
        assert size == length
        assert parsed % 5 == value
        assert {operator for *_, operator in operations} <= set(operators)


@both_alphabets
@pytest.mark.parametrize("size", [40, 14])
def test_splits_and_operators_are_uniform_at_every_depth(size, operators):
    texts, _ = draw(2000, 40, operators)
    parsed = (parse(text)[2] for text in texts)
    found = itertools.chain.from_iterable(parsed)
    counts = collections.Counter(
        (first, operator) for whole, first, operator in found if whole == size
    )
    outcomes = list(itertools.product(range(1, size - 3), operators))
    assert_counts_follow(counts, row.uniform(outcomes))


def test_digits_of_long_expressions_are_uniform():
    texts, _ = draw(200, 500, "+-*")
    counts = collections.Counter("".join(texts))
    digits = {digit: counts[digit] for digit in "01234"}
    assert_counts_follow(digits, row.uniform("01234"))


@pytest.mark.parametrize("length", range(1, 10))
def test_value_probabilities_by_enumeration(length):
    expected = np.zeros(5)
    for tokens, probability in ROW.outcomes(length).items():
        expected[ROW.oracle(tokens)] += probability
    np.testing.assert_allclose(compute_value_probabilities(length, 3), expected)
    np.testing.assert_allclose(compute_value_probabilities(length, 2), 1 / 5)


@both_alphabets
@pytest.mark.parametrize(
    "length", [41, pytest.param(200, marks=pytest.mark.product)]
)
def test_values_follow_their_probabilities(length, operators):
    _, values = draw(5000, length, operators)
    expected = compute_value_probabilities(length, len(operators)).tolist()
    assert_counts_follow(collections.Counter(values), dict(enumerate(expected)))
