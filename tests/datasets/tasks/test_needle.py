"""Needle in a haystack: places of needles, and a small vocabulary."""

import collections
import itertools
import math

import numpy as np

from datasets.tasks.needle import Needle
from tests.datasets.tasks import row


def value_after_the_key(tokens):
    *haystack, query = tokens
    assert haystack.count(query) == 1
    return [haystack[haystack.index(query) + 1]]


def make_row(symbols, keys, **fields):
    def is_valid(tokens):
        *haystack, query = tokens
        found = [token for token in haystack if token >= symbols]
        before_symbols = sum(
            first >= symbols > second
            for first, second in itertools.pairwise(haystack)
        )
        distinct, needles = len(set(found)), min(len(haystack) // 2, 4)
        sizes = {len(found), distinct, before_symbols, needles}
        return query in found and len(sizes) == 1

    return row.Row(
        published=(symbols + keys, symbols, row.REGULAR, 1 / 16),
        oracle=value_after_the_key,
        outcomes=row.valid_strings(symbols + keys, is_valid, 3),
        floor_rules=row.most_frequent(range(symbols)),
        input_length=lambda length: max(length, 3),
        floor_examples=4096,
        **fields,
    )


def count_keys(inputs, targets):
    """Of a haystack: keys, and those before a symbol."""
    is_key = inputs[:, :-1] >= 16
    before_symbol = is_key[:, :-1] & ~is_key[:, 1:]
    return np.stack([is_key.sum(axis=1), before_symbol.sum(axis=1)], axis=1)


def find_needle(inputs, targets):
    return np.argmax(inputs[:, :-1] == inputs[:, -1:], axis=1) // 20


# 96 items, and an item's place is its number and the needles before it.
PLACES = collections.Counter()
for item, before in itertools.product(range(96), range(4)):
    ways = math.comb(item, before) * math.comb(95 - item, 3 - before)
    PLACES[(item + before) // 20] += ways / math.comb(95, 3) / 96

ROW = make_row(
    *(16, 16),
    laws=(
        *(
            row.Law(length, 2000, count_keys, row.always(4, 4))
            for length in (9, 10, 500)
        ),
        row.Law(101, 20_000, find_needle, PLACES),
    ),
    small=make_row(
        *(2, 4),
        task=Needle(input_vocabulary_size=6, output_vocabulary_size=2),
        enumerated_lengths=range(1, 7),
    ),
)
