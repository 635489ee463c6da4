"""Solving equations: which digit is hidden, and how often which value."""

import collections

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


ROW = row.Row(
    published=(11, 5, row.CONTEXT_FREE, 0.2),
    oracle=solution,
    outcomes=equations,
    floor_rules=row.constants(5),
    enumerated_lengths=range(1, 12),
)
