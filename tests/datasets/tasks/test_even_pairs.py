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
    # Of two bits, one 1 means unequal ends. Of three, one or two 1s (3/4 of
    # the strings) mean unequal ends in two cases of three. Of four, ends are
    # equal with chances 1, 1/2 and 1/3 for 0, 1 and 2 ones.
    floors={
        1: (1, 1),
        2: (1, 1 / 2),
        3: (1 / 4 + 3 / 4 * 2 / 3, 1 / 2),
        4: (2 / 16 + 8 / 16 * 1 / 2 + 6 / 16 * 2 / 3, 1 / 2),
    },
    laws=(row.Law(500, 20_000, row.every_target, row.uniform(range(2))),),
)
