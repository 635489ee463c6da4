"""Gray values as tokens, row by row, and back."""

import numpy as np
import tensorflow as tf

BLACK = 0
ROW_END = 256
DELIMITERS = {"black": BLACK, "own": ROW_END}
"""Tokens at the end of a row: a black pixel, or one that is no pixel."""


def to_tokens(images, delimiter=BLACK):
    """Flattens images row by row, each row ended by a delimiter.

    Args:
        images: Integer tensor `(B, H, W)` with values from 0 to 255.
        delimiter: int. Token at the end of a row, `BLACK` or `ROW_END`.

    Returns:
        int32 tensor `(B, H * (W + 1))`.

    >>> to_tokens([[[1, 2], [3, 4]]], ROW_END).numpy().tolist()
    [[1, 2, 256, 3, 4, 256]]
    """
    images = tf.cast(images, tf.int32)
    rows = tf.pad(images, [[0, 0], [0, 0], [0, 1]], constant_values=delimiter)
    shape = tf.shape(rows)
    return tf.reshape(rows, (shape[0], shape[1] * shape[2]))


def lay_out(values, size):
    """Undoes `to_tokens`, for tokens or for other numbers of each token.

    Args:
        values: Array `(B, T)`, with at least `H * (W + 1)` numbers a sequence.
        size: Pair of int, `H` and `W`.

    Returns:
        Array `(B, H, W)`; the numbers of delimiters are left out.

    >>> lay_out([[1, 2, 256, 3, 4, 256]], (2, 2)).tolist()
    [[[1, 2], [3, 4]]]
    """
    height, width = size
    values = np.asarray(values)[:, : height * (width + 1)]
    return values.reshape(-1, height, width + 1)[:, :, :width]
