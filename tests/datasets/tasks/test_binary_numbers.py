"""Binary numbers: the draw, and arithmetic against Python's integers."""

import collections
import itertools
import math
import random

import numpy as np
import pytest
import tensorflow as tf

from datasets.tasks import binary_numbers
from tests.datasets.tasks.bits import from_bits, to_bits
from tests.datasets.tasks.chi_square import assert_counts_follow


def rows(numbers, width):
    return tf.constant([to_bits(number, width) for number in numbers], tf.int32)


def integers(bits):
    return [from_bits(row) for row in bits.numpy().tolist()]


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
