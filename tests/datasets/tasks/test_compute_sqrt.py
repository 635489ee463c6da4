"""Square root: its row."""

import math

from tests.datasets.tasks import row
from tests.datasets.tasks.bits import from_bits, to_bits


def root(tokens):
    number = from_bits(tokens[::-1])
    return to_bits(math.isqrt(number), (len(tokens) + 1) // 2)[::-1]


def numbers_from_one(length):
    return row.equally_likely(
        tuple(to_bits(number, length)[::-1]) for number in range(1, 2**length)
    )


ROW = row.Row(
    published=(2, 2, row.CONTEXT_SENSITIVE, 0.5),
    oracle=root,
    outcomes=numbers_from_one,
    floor_rules=row.constants(2),
    output_length=lambda length: (length + 1) // 2,
    enumerated_lengths=range(1, 9),
)
