"""Arithmetic on numbers of hundreds of bits.

A batch of numbers is an int32 tensor `(B, width)` of bits, lowest bit first.
Results have the same width as the operands, unless stated otherwise; it must
be large enough for the result.
"""

import math

import tensorflow as tf

from datasets.tasks.base import draw_symbols


def draw_numbers(seed, batch_size, lengths, width):
    """Draws uniform numbers from 1 to `2**length - 1`.

    Args:
        seed: int64 tensor `(2,)`.
        batch_size: int or scalar int tensor. Number of rows B.
        lengths: int or int32 tensor `(B, 1)`, at least 1. Largest number of
            bits of each number.
        width: int or scalar int tensor. Number of columns.

    Returns:
        int32 `(B, width)`; in each row, the columns from `length` on are zero.
    """
    top_seed, bit_seed = tf.unstack(tf.random.split(seed, 2, alg="philox"))
    uniform = tf.random.stateless_uniform(
        (batch_size, 1), top_seed, dtype=tf.float64, alg="philox"
    )
    # The highest bit that is set: with probability 1/2 the top bit, 1/4 the
    # next one, and so on, given that the number is not zero. All lower bits
    # are uniform.
    share = 1 - tf.pow(
        tf.constant(2, tf.float64), -tf.cast(lengths, tf.float64)
    )
    places_down = -tf.math.log(1 - uniform * share) / math.log(2)
    top = tf.maximum(lengths - 1 - tf.cast(places_down, tf.int32), 0)
    place = tf.range(width)
    bits = draw_symbols(bit_seed, batch_size, width, 2)
    return tf.where(place < top, bits, tf.cast(place == top, tf.int32))


def count_significant_bits(bits):
    """Counts the bits without leading zeros, int32 `(B, 1)`; 0 for zero."""
    place = tf.range(1, tf.shape(bits)[1] + 1)
    return tf.reduce_max(bits * place, axis=1, keepdims=True)


def add(first, second):
    """Adds two numbers, int32 `(B, width)`."""
    return carry(first + second)


def multiply(first, second):
    """Multiplies two numbers, int32 `(B, width)`, by Fourier transforms."""
    width = tf.shape(first)[1]

    def transform(bits):
        return tf.signal.rfft(tf.cast(bits, tf.float64), [width])

    # The product fits into the width, so the circular convolution does not wrap
    # around. Rounding errors of float64 are far below 0.5.
    digits = tf.signal.irfft(transform(first) * transform(second), [width])
    digits = tf.cast(tf.round(digits), tf.int32)
    return carry(tf.ensure_shape(digits, first.shape))


def compute_square_root(bits):
    """Computes square roots, rounded down.

    This is the digit-by-digit method in base 2: each pair of bits of the
    number, from the highest, decides one bit of the root.

    Args:
        bits: int32 `(B, width)`.

    Returns:
        int32 `(B, (width + 1) // 2)`.
    """
    width = bits.shape[1]
    if width is None:
        width = tf.shape(bits)[1]
    half = (width + 1) // 2
    bits = tf.pad(bits, [[0, 0], [0, 2 * half - width]])
    # A remainder is at most twice the root, and two more bits are appended.
    rest = tf.zeros((tf.shape(bits)[0], half + 3), tf.int32)
    root = tf.zeros_like(rest)

    def decide_bit(index, root, rest):
        pair = tf.slice(bits, [0, 2 * index], [-1, 2])
        rest = tf.concat([pair, rest[:, :-2]], axis=1)
        one = tf.ones_like(pair[:, :1])
        trial = tf.concat([one, tf.zeros_like(one), root[:, :-2]], axis=1)
        # With 1 - difference, borrows propagate like carries: 2 makes a borrow,
        # 1 passes a borrow on, and 0 stops it.
        difference = rest - trial
        borrows = _find_carries(1 - difference)
        fits = borrows[:, -1:] == 0
        rest = tf.where(fits, (difference + _shift(borrows)) % 2, rest)
        root = tf.concat([tf.cast(fits, tf.int32), root[:, :-1]], axis=1)
        return index - 1, root, rest

    _, root, _ = tf.while_loop(
        lambda index, *_: index >= 0,
        decide_bit,
        (half - 1, root, rest),
    )
    return root[:, :half]


def carry(digits):
    """Converts digits of any size, lowest first, to bits of the same number.

    Args:
        digits: int32 `(B, width)`, at least 0. Coefficients of powers of 2.

    Returns:
        int32 `(B, width)`, 0 or 1.
    """
    # Each pass keeps the last bit of a digit and carries the other bits.
    digits = tf.while_loop(
        lambda digits: tf.reduce_max(digits) > 2,
        lambda digits: (digits % 2 + _shift(digits // 2),),
        (digits,),
    )[0]
    return (digits + _shift(_find_carries(digits))) % 2


def _find_carries(digits):
    """Finds the places of digits 0, 1 or 2 that carry to the next place.

    A 2 carries, a 0 does not, and a 1 carries if the place below it does.
    Therefore all ones in a run do as the digit before the run, and no loop over
    places is needed.

    Returns:
        int32 `(B, width)`, 1 where there is a carry.
    """
    batch_size, width = tf.unstack(tf.shape(digits))
    run = tf.cumsum(tf.cast(digits != 1, tf.int32), axis=1)
    run += tf.range(batch_size)[:, tf.newaxis] * (width + 1)
    sends = tf.math.unsorted_segment_max(
        digits // 2, run, batch_size * (width + 1)
    )
    return tf.gather(sends, run)


def _shift(digits):
    """Moves every digit one place up."""
    return tf.pad(digits[:, :-1], [[0, 0], [1, 0]])
