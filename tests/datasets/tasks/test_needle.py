"""Needle in a haystack: places of needles, and a small vocabulary."""

import collections
import itertools
import math

import numpy as np
import pytest

from datasets.tasks.needle import Needle
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import REGULAR, Row


def value_after_the_key(tokens):
    *haystack, query = tokens
    assert haystack.count(query) == 1
    return [haystack[haystack.index(query) + 1]]


def needles_in_haystacks(symbols, keys):
    def outcomes(length):
        room = max(length, 3) - 1
        needles = min(room // 2, 4)
        ways = list(itertools.combinations(range(room - needles), needles))
        found = collections.Counter()
        for way, names, values in itertools.product(
            ways,
            itertools.permutations(range(symbols, symbols + keys), needles),
            itertools.product(range(symbols), repeat=room - needles),
        ):
            haystack, waiting = [], list(names)
            for item, value in enumerate(values):
                haystack += [waiting.pop(0)] if item in way else []
                haystack.append(value)
            for name in names:
                found[(*haystack, name)] += 1
        return {key: count / found.total() for key, count in found.items()}

    return outcomes


def make_row(symbols, keys, **fields):
    def most_frequent_value(inputs):
        counts = [(inputs == symbol).sum(axis=1) for symbol in range(symbols)]
        return [np.argmax(counts, axis=0)[:, np.newaxis]]

    return Row(
        published=(symbols + keys, symbols, REGULAR, 1 / 16),
        oracle=value_after_the_key,
        outcomes=needles_in_haystacks(symbols, keys),
        floor_rules=most_frequent_value,
        input_length=lambda length: max(length, 3),
        floor_examples=4096,
        **fields,
    )


ROW = make_row(16, 16)
SMALL_ROW = make_row(
    2,
    4,
    task=Needle(input_vocabulary_size=6, output_vocabulary_size=2),
    enumerated_lengths=range(1, 7),
)


@pytest.mark.parametrize("length", [9, 10, 500])
def test_four_keys_before_symbols(length):
    inputs = Needle().sample((1, 2), 2000, length)["inputs"].numpy()
    haystack = inputs[:, :-1]
    assert ((haystack >= 16).sum(axis=1) == 4).all()
    assert (haystack[:, -1] < 16).all()
    rows, places = np.nonzero(haystack >= 16)
    assert (haystack[rows, places + 1] < 16).all()


def test_the_needle_is_anywhere():
    inputs = Needle().sample((1, 2), 20_000, 101)["inputs"].numpy()
    places = np.argmax(inputs[:, :-1] == inputs[:, -1:], axis=1)
    counts = collections.Counter((places // 20).tolist())
    # 96 items, and an item's place is its number and the needles before it.
    expected = collections.Counter()
    for item in range(96):
        for before in range(4):
            weight = math.comb(item, before) * math.comb(95 - item, 3 - before)
            expected[(item + before) // 20] += weight
    total = expected.total()
    shares = {key: weight / total for key, weight in expected.items()}
    assert_counts_follow(counts, shares)
