"""Binary majority: the number of zeros, and their places."""

import collections
import itertools
import math

import pytest

from datasets.tasks.binary_majority import BinaryMajority
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import CONTEXT_FREE, Row, constants


def strings_without_ties(length):
    counts = [zeros for zeros in range(length + 1) if 2 * zeros != length]
    outcomes = {}
    for bits in itertools.product(range(2), repeat=length):
        zeros = bits.count(0)
        if zeros in counts:
            outcomes[bits] = 1 / len(counts) / math.comb(length, zeros)
    return outcomes


ROW = Row(
    published=(2, 2, CONTEXT_FREE, 0.5),
    oracle=lambda bits: [int(bits.count(1) > bits.count(0))],
    outcomes=strings_without_ties,
    floor_rules=constants(2),
    enumerated_lengths=range(1, 8),
)


@pytest.mark.parametrize("length", [40, 41])
def test_number_of_zeros_is_uniform(length):
    inputs = BinaryMajority().sample((1, 2), 20_000, length)["inputs"].numpy()
    counts = collections.Counter((inputs == 0).sum(axis=1).tolist())
    allowed = [zeros for zeros in range(length + 1) if 2 * zeros != length]
    assert_counts_follow(counts, dict.fromkeys(allowed, 1 / len(allowed)))
