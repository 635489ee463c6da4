"""Arithmetic on numbers of hundreds of bits.

A number is a row of bits, the lowest first, in an int32 tensor `(B, width)`.
Every operation keeps the width, which must have room for the result.
"""

import math

import tensorflow as tf

from datasets.tasks.base import draw_symbols


def draw_numbers(seed, batch_size, lengths, width):
    """Draws numbers uniform from 1 to `2**length - 1`.

    Args:
        seed: int64 tensor of shape `(2,)`.
        batch_size: Number of rows B.
        lengths: Bits that a number may have, at least 1: an int or an int32
            tensor `(B, 1)`.
        width: Number of columns.

    Returns:
        int32 `(B, width)`, zero from the length of each row on.
    """
    top_seed, bit_seed = tf.unstack(tf.random.split(seed, 2, alg="philox"))
    uniform = tf.random.stateless_uniform(
        (batch_size, 1), top_seed, dtype=tf.float64, alg="philox"
    )
    # Half of the numbers have the highest bit set, a quarter the next one
    # only, and so on; no number is zero. The bits below are fair.
    share = 1 - tf.pow(
        tf.constant(2, tf.float64), -tf.cast(lengths, tf.float64)
    )
    places_down = -tf.math.log(1 - uniform * share) / math.log(2)
    top = tf.maximum(lengths - 1 - tf.cast(places_down, tf.int32), 0)
    place = tf.range(width)
    bits = draw_symbols(bit_seed, batch_size, width, 2)
    return tf.where(place < top, bits, tf.cast(place == top, tf.int32))


def count_significant_bits(bits):
    """Number of bits without leading zeros, `(B, 1)`; 0 for zero."""
    place = tf.range(1, tf.shape(bits)[1] + 1)
    return tf.reduce_max(bits * place, axis=1, keepdims=True)


def add(first, second):
    """The sum of two numbers."""
    return carry(first + second)


def multiply(first, second):
    """The product of two numbers."""
    width = tf.shape(first)[1]

    def transform(bits):
        return tf.signal.rfft(tf.cast(bits, tf.float64), [width])

    # The product fits, so nothing wraps around. float64 leaves errors far
    # below a half.
    digits = tf.signal.irfft(transform(first) * transform(second), [width])
    digits = tf.cast(tf.round(digits), tf.int32)
    return carry(tf.ensure_shape(digits, first.shape))


def compute_square_root(bits):
    """The root of a number, rounded down, in half of the width, rounded up.

    The schoolbook method in base 2: two bits of the number are brought down
    at a time, and each pair decides one bit of the root, from the highest.
    """
    width = bits.shape[1]
    if width is None:
        width = tf.shape(bits)[1]
    half = (width + 1) // 2
    bits = tf.pad(bits, [[0, 0], [0, 2 * half - width]])
    # A remainder is at most twice the root; then come two more bits.
    rest = tf.zeros((tf.shape(bits)[0], half + 3), tf.int32)
    root = tf.zeros_like(rest)

    def decide_bit(index, root, rest):
        pair = tf.slice(bits, [0, 2 * index], [-1, 2])
        rest = tf.concat([pair, rest[:, :-2]], axis=1)
        one = tf.ones_like(pair[:, :1])
        trial = tf.concat([one, tf.zeros_like(one), root[:, :-2]], axis=1)
        # Turned around, a difference of digits carries like a sum: 2 borrows,
        # 1 passes a borrow on, 0 stops it.
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
    """Turns digits of any size, the lowest first, into the bits of the sum."""
    # Every pass leaves a digit its last bit and hands half of it on.
    digits = tf.while_loop(
        lambda digits: tf.reduce_max(digits) > 2,
        lambda digits: (digits % 2 + _shift(digits // 2),),
        (digits,),
    )[0]
    return (digits + _shift(_find_carries(digits))) % 2


def _find_carries(digits):
    """Which places of digits 0, 1 or 2 send a carry to the next one.

    A 2 sends one, a 0 does not, and a 1 does what the place below it does. So
    a run of ones does as the digit before it, without a loop over places.
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
