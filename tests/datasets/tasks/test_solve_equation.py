"""Solving equations: which digit is hidden, and how often which value."""

import collections

import pytest

from datasets.tasks.solve_equation import SolveEquation
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.expressions import bracketed
from tests.datasets.tasks.row import CONTEXT_FREE, Row, constants


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


ROW = Row(
    published=(11, 5, CONTEXT_FREE, 0.2),
    oracle=solution,
    outcomes=equations,
    floor_rules=constants(5),
    enumerated_lengths=range(1, 12),
)


def texts(length, batch_size):
    inputs = SolveEquation().sample((1, 2), batch_size, length)["inputs"]
    return [
        "".join("01234+-()x="[token] for token in row)
        for row in inputs.numpy().tolist()
    ]


def test_digits_behind_more_tokens_are_hidden_more_often():
    # Of the five tokens of (d+d), three lead to the first digit.
    counts = collections.Counter(text.index("x") for text in texts(7, 20_000))
    assert_counts_follow(counts, {1: 3 / 5, 3: 2 / 5})


def test_long_equations_have_one_unknown_and_a_value():
    counts = collections.Counter()
    for text in texts(500, 200):
        assert text.count("x") == 1 and text[-2] == "="
        assert text.count("=") == 1 and "x" in text[:-2]
        counts[text[-1]] += 1
    assert_counts_follow(counts, dict.fromkeys("01234", 1 / 5))


@pytest.mark.parametrize("length", [3, 4, 40, 500])
def test_answers_are_uniform_and_not_the_value(length):
    batch = SolveEquation().sample((1, 2), 2000, length)
    answers = batch["targets"].numpy()[:, 0].tolist()
    values = batch["inputs"].numpy()[:, -1].tolist()
    counts = collections.Counter(zip(answers, values, strict=True))
    if length > 4:
        pairs = {(a, v): 1 / 25 for a in range(5) for v in range(5)}
    else:
        pairs = {(d, d if length == 3 else -d % 5): 1 / 5 for d in range(5)}
    assert_counts_follow(counts, pairs)
