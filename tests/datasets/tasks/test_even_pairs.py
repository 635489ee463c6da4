"""Even pairs: its row."""

import itertools

import numpy as np

from tests.datasets.tasks import row


def unequal_pairs(bits):
    return [sum(a != b for a, b in itertools.pairwise(bits)) % 2]


def unequal_ends_if_balanced(inputs):
    length = inputs.shape[1]
    imbalance = np.abs(2 * inputs.sum(axis=1, keepdims=True) - length)
    return [imbalance <= limit for limit in range(-1, length + 1)]


ROW = row.Row(
    published=(2, 2, row.REGULAR, 0.5),
    oracle=unequal_pairs,
    outcomes=row.strings(2),
    floor_rules=unequal_ends_if_balanced,
)
