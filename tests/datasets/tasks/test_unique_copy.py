"""Unique copy: symbols are distinct as long as there are any."""

import collections
import itertools

import numpy as np
import pytest

from datasets.tasks.unique_copy import UniqueCopy
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import CONTEXT_SENSITIVE, Row, equally_likely


def orders_of(symbols):
    """Strings of distinct symbols, and several ones beyond the vocabulary."""

    def outcomes(length):
        whole, rest = divmod(length, symbols)
        orders = list(itertools.permutations(range(symbols)))
        blocks = [orders] * whole
        blocks.append(list(itertools.permutations(range(symbols), rest)))
        strings = itertools.product(*blocks)
        return equally_likely(
            tuple(itertools.chain(*string)) for string in strings
        )

    return outcomes


def most_frequent_symbol(symbols):
    def rules(inputs):
        counts = [(inputs == symbol).sum(axis=1) for symbol in range(symbols)]
        return [np.argmax(counts, axis=0)[:, np.newaxis]]

    return rules


def make_row(symbols, oracle=list, **fields):
    return Row(
        published=(symbols, symbols, CONTEXT_SENSITIVE, 1 / 150),
        oracle=oracle,
        outcomes=orders_of(symbols),
        floor_rules=most_frequent_symbol(symbols),
        output_length=lambda length: length,
        **fields,
    )


ROW = make_row(150)
SMALL_ROW = make_row(
    4,
    task=UniqueCopy(input_vocabulary_size=4, output_vocabulary_size=4),
    enumerated_lengths=range(1, 7),
)


@pytest.mark.parametrize("length", [1, 50, 150])
def test_no_symbol_is_repeated(length):
    inputs = UniqueCopy().sample((1, 2), 500, length)["inputs"].numpy()
    assert all(len(set(row)) == length for row in inputs.tolist())
    if length < 150:
        counts = collections.Counter(inputs.ravel().tolist())
        assert_counts_follow(counts, dict.fromkeys(range(150), 1 / 150))


def test_floors_by_hand():
    assert UniqueCopy().floor_accuracy(1) == 1
    assert UniqueCopy().floor_accuracy(50) == 1 / 50
    # Of 300 tokens, each of 150 symbols is two.
    assert UniqueCopy().floor_accuracy(300) == 1 / 150
    assert UniqueCopy().floor_accuracy(301) == 3 / 301
