"""Binary numbers, for the rows of several tasks."""

import itertools

import numpy as np

from tests.datasets.tasks import row


def from_bits(bits):
    return sum(bit << place for place, bit in enumerate(bits))


def to_bits(number, count):
    return [number >> place & 1 for place in range(count)]


def operands(tokens):
    separator = tokens.index(2) if 2 in tokens else len(tokens)
    return from_bits(tokens[:separator]), from_bits(tokens[separator + 1 :])


def terminated(number, outputs):
    bits = to_bits(number, max(number.bit_length(), 1))
    return [*bits[: outputs - 1], 2, *[0] * (outputs - 1 - len(bits))]


def two_numbers(length):
    if length < 3:
        return row.equally_likely(
            tuple(to_bits(number, length)) for number in range(2**length - 1)
        )
    outcomes = {}
    for count in range(1, length - 1):
        rest = length - 1 - count
        pairs = list(itertools.product(range(1, 2**count), range(1, 2**rest)))
        for first, second in pairs:
            inputs = (*to_bits(first, count), 2, *to_bits(second, rest))
            outcomes[inputs] = 1 / (length - 2) / len(pairs)
    return outcomes


def threshold_on_ones_or_termination(inputs):
    return [*row.threshold_on_ones(inputs), np.full((1, 1), 2)]


def find_separator(inputs, targets):
    assert ((inputs == 2).sum(axis=1) == 1).all()
    return (inputs == 2).argmax(axis=1)


def find_ends(inputs, targets):
    """Zeros at the ends of both numbers, up to 3, and their lowest bits."""
    found = []
    for tokens in inputs.tolist():
        place = tokens.index(2)
        if 30 < place < len(tokens) - 31:
            zeros = tokens[place - 1 :: -1].index(1), tokens[::-1].index(1)
            low_bits = tokens[0], tokens[place + 1]
            found.append((*np.minimum(zeros, 3).tolist(), *low_bits))
    return found


def find_last_bits(inputs, targets):
    ends = (targets == 2).argmax(axis=1)
    return targets[np.arange(len(targets)), ends - 1]


SHARES_OF_ZEROS = (1 / 2, 1 / 4, 1 / 8, 1 / 8)

laws_of_two_numbers = (
    row.Law(40, 20_000, find_separator, row.uniform(range(1, 39))),
    row.Law(
        500,
        4000,
        find_ends,
        {
            (*zeros, *low_bits): share / 4
            for zeros in np.ndindex(4, 4)
            for low_bits in np.ndindex(2, 2)
            for share in [SHARES_OF_ZEROS[zeros[0]] * SHARES_OF_ZEROS[zeros[1]]]
        },
    ),
    # The answer ends with its highest one.
    row.Law(40, 1000, find_last_bits, row.always(1)),
)
