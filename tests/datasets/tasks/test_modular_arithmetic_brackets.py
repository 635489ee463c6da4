"""Modular arithmetic with brackets: its row."""

from tests.datasets.tasks import row
from tests.datasets.tasks.expressions import bracketed, value


def bracketed_expressions(length):
    return {
        tuple(map("01234+-*()".index, text)): probability
        for text, probability in bracketed(length, "+-*").items()
    }


ROW = row.Row(
    published=(11, 5, row.CONTEXT_FREE, 0.2),
    oracle=value,
    outcomes=bracketed_expressions,
    floor_rules=row.constants(5),
    enumerated_lengths=range(1, 10),
)
