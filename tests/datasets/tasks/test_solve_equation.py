"""Solving equations: which digit is hidden, and how often which value."""

import collections
import itertools

import numpy as np

from tests.datasets.tasks import row
from tests.datasets.tasks.expressions import bracketed


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


def count_signs(inputs, targets):
    """Unknowns before the equals sign, equals signs, and where they are."""
    return np.stack(
        [
            (inputs[:, :-2] == 9).sum(axis=1),
            (inputs == 10).sum(axis=1),
            inputs[:, -2],
        ],
        axis=1,
    )


ROW = row.Row(
    published=(11, 5, row.CONTEXT_FREE, 0.2),
    oracle=solution,
    outcomes=equations,
    floor_rules=row.constants(5),
    enumerated_lengths=range(1, 12),
    laws=(
        # Of the five tokens of (d+d), three lead to the first digit.
        row.Law(
            7,
            20_000,
            lambda inputs, targets: (inputs == 9).argmax(axis=1),
            {1: 3 / 5, 3: 2 / 5},
        ),
        row.Law(500, 200, count_signs, row.always(1, 1, 10)),
        # Answers are row.uniform, and independent of the values.
        *(
            row.Law(
                length,
                2000,
                lambda inputs, targets: np.stack(
                    [targets[:, 0], inputs[:, -1]], axis=1
                ),
                row.uniform(list(itertools.product(range(5), repeat=2))),
            )
            for length in (40, 500)
        ),
    ),
)
