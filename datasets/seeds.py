"""Random seeds derived from integers."""

import tensorflow as tf


def fold_in(seed, *numbers):
    """Derives a different seed for each sequence of integers.

    Args:
        seed: int. Seed of the data.
        *numbers: ints or scalar int tensors.

    Returns:
        int64 tensor `(2,)`, for stateless random functions.
    """
    key = tf.constant([seed, 0], tf.int64)
    for number in numbers:
        key = tf.random.fold_in(key, tf.cast(number, tf.int64), alg="philox")
    return key
