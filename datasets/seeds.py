"""Seeds: one for every sequence of integers."""

import tensorflow as tf


def fold_in(seed, *numbers):
    """Returns a seed of its own for every sequence of integers.

    Args:
        seed: Integer seed of the data.
        *numbers: Integers or scalar tensors.

    Returns:
        int64 tensor of shape `(2,)`, for stateless random functions.
    """
    key = tf.constant([seed, 0], tf.int64)
    for number in numbers:
        key = tf.random.fold_in(key, tf.cast(number, tf.int64), alg="philox")
    return key
