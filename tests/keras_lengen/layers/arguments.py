"""Comparison of what constructors' arguments change."""

import keras
import numpy as np


def differ(first, second):
    """Whether two nests of arrays differ in structure, shape or numbers."""
    first, second = keras.tree.flatten(first), keras.tree.flatten(second)
    return len(first) != len(second) or any(
        np.shape(a) != np.shape(b) or not np.array_equal(a, b)
        for a, b in zip(first, second, strict=True)
    )
