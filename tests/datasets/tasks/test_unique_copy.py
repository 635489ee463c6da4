"""Unique copy: symbols are distinct as long as there are any."""

import itertools

from datasets.tasks.unique_copy import UniqueCopy
from tests.datasets.tasks import row


def orders_of(symbols):
    """Strings of distinct symbols, and several ones beyond the vocabulary."""

    def outcomes(length):
        whole, rest = divmod(length, symbols)
        orders = list(itertools.permutations(range(symbols)))
        blocks = [orders] * whole
        blocks.append(list(itertools.permutations(range(symbols), rest)))
        strings = itertools.product(*blocks)
        return row.equally_likely(
            tuple(itertools.chain(*string)) for string in strings
        )

    return outcomes


def make_row(symbols, oracle=list, **fields):
    return row.Row(
        published=(symbols, symbols, row.CONTEXT_SENSITIVE, 1 / 150),
        oracle=oracle,
        outcomes=orders_of(symbols),
        floor_rules=row.most_frequent(range(symbols)),
        output_length=lambda length: length,
        **fields,
    )


ROW = make_row(
    150,
    small=make_row(
        4,
        task=UniqueCopy(input_vocabulary_size=4, output_vocabulary_size=4),
        enumerated_lengths=range(1, 7),
    ),
)
