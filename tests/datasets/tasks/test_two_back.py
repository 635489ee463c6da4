"""2-back: its row."""

import numpy as np

from tests.datasets.tasks import row


def two_before(tokens):
    return [0, 0, *tokens][: len(tokens)]


def zero_and_symbols(length):
    return {
        (0, *(1 + symbol for symbol in symbols)): probability
        for symbols, probability in row.strings(15)(length - 1).items()
    }


def zero_or_most_frequent(inputs):
    counts = [(inputs == symbol).sum(axis=1) for symbol in range(1, 16)]
    return [np.zeros((1, 1)), 1 + np.argmax(counts, axis=0)[:, np.newaxis]]


ROW = row.Row(
    published=(16, 16, row.REGULAR, 1 / 16),
    oracle=two_before,
    outcomes=zero_and_symbols,
    floor_rules=zero_or_most_frequent,
    output_length=lambda length: length,
    enumerated_lengths=range(1, 4),
    floor_examples=4096,
)
