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
