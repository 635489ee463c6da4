"""Binary numbers: rows of their tasks, the draw, and arithmetic."""

import collections
import itertools
import math
import random

import numpy as np
import pytest
import tensorflow as tf

from datasets.tasks import binary_numbers
from tests.datasets.tasks import row
from tests.datasets.tasks.chi_square import assert_counts_follow


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


def compute_numbers(compute, more):
    """The row of a task that computes a number from two others.

    An answer has `more` tokens than the two numbers together.
    """
    return row.TerminatedRow(
        published=(3, 3, row.CONTEXT_SENSITIVE, 0.5),
        oracle=lambda tokens: terminated(
            compute(operands(tokens)), len(tokens) + more
        ),
        outcomes=two_numbers,
        floor_rules=lambda inputs: [
            *row.threshold_on_ones(inputs),
            np.full((1, 1), 2),
        ],
        output_length=lambda length: length + more,
        enumerated_lengths=range(1, 11),
    )


def root(tokens):
    number = from_bits(tokens[::-1])
    return to_bits(math.isqrt(number), (len(tokens) + 1) // 2)[::-1]


def numbers_from_one(length):
    return row.equally_likely(
        tuple(to_bits(number, length)[::-1]) for number in range(1, 2**length)
    )


ROWS = {
    "binary_addition": compute_numbers(sum, 1),
    "binary_multiplication": compute_numbers(math.prod, 0),
    "compute_sqrt": row.Row(
        published=(2, 2, row.CONTEXT_SENSITIVE, 0.5),
        oracle=root,
        outcomes=numbers_from_one,
        output_length=lambda length: (length + 1) // 2,
        enumerated_lengths=range(1, 9),
    ),
}


def rows(numbers, width):
    return tf.constant([to_bits(number, width) for number in numbers], tf.int32)


def integers(bits):
    return [from_bits(number) for number in bits.numpy().tolist()]


def notable(size):
    """Numbers of up to `size` bits, where carries go far or stop early."""
    ones = 2**size - 1
    draw = random.Random(size)
    alternating = ones // 3
    return [
        *(0, 1, ones, ones - 1, ones // 2, 2 ** (size - 1), alternating),
        *(draw.getrandbits(size) for _ in range(3)),
    ]


def test_numbers_of_3000_bits():
    numbers = binary_numbers.draw_numbers((1, 2), 4000, 3000, 3001).numpy()
    from_top = numbers[:, 2999::-1].argmax(axis=1)
    counts = collections.Counter(np.minimum(from_top, 8).tolist())
    expected = {zeros: 2 ** -(zeros + 1) for zeros in range(8)} | {8: 2**-8}
    assert_counts_follow(counts, expected)
    assert from_top.max() < 30 and not numbers[:, 3000].any()


@pytest.mark.parametrize("size", [1, 7, 2000])
def test_sums_products_and_significant_bits(size):
    numbers = notable(size)
    pairs = list(itertools.product(numbers, repeat=2))
    first = rows([left for left, _ in pairs], 2 * size)
    second = rows([right for _, right in pairs], 2 * size)
    assert integers(binary_numbers.add(first, second)) == list(map(sum, pairs))
    products = list(map(math.prod, pairs))
    assert integers(binary_numbers.multiply(first, second)) == products
    counts = binary_numbers.count_significant_bits(rows(numbers, size))
    assert counts.numpy().tolist() == [[n.bit_length()] for n in numbers]


@pytest.mark.parametrize(
    "size", [1, 2, 7, 64, pytest.param(501, marks=pytest.mark.product)]
)
def test_square_roots(size):
    squares = [root**2 for root in notable(size // 2 or 1)]
    numbers = [*squares, *(square - 1 for square in squares), *notable(size)]
    numbers = [number for number in numbers if 0 <= number < 2**size]
    roots = tf.function(binary_numbers.compute_square_root)(rows(numbers, size))
    assert roots.shape[1] == (size + 1) // 2
    assert integers(roots) == list(map(math.isqrt, numbers))
