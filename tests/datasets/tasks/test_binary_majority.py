"""Binary majority: the number of zeros is uniform, but makes no tie."""

import itertools
import math

from tests.datasets.tasks import row


def zeros_without_ties(length):
    return [zeros for zeros in range(length + 1) if 2 * zeros != length]


def strings_without_ties(length):
    counts = zeros_without_ties(length)
    return {
        bits: 1 / len(counts) / math.comb(length, bits.count(0))
        for bits in itertools.product(range(2), repeat=length)
        if bits.count(0) in counts
    }


ROW = row.Row(
    published=(2, 2, row.CONTEXT_FREE, 0.5),
    oracle=lambda bits: [int(bits.count(1) > bits.count(0))],
    outcomes=strings_without_ties,
    floor_rules=row.constants(2),
    enumerated_lengths=range(1, 8),
)
