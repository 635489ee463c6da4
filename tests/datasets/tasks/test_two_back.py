"""2-back: the start, and both floors."""

import collections

import numpy as np
import pytest

from datasets.tasks.two_back import TwoBack
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import REGULAR, Row, strings


def two_before(tokens):
    return [0, 0, *tokens][: len(tokens)]


def zero_and_symbols(length):
    return {
        (0, *(1 + symbol for symbol in symbols)): probability
        for symbols, probability in strings(15)(length - 1).items()
    }


def zero_or_most_frequent(inputs):
    counts = [(inputs == symbol).sum(axis=1) for symbol in range(1, 16)]
    return [np.zeros((1, 1)), 1 + np.argmax(counts, axis=0)[:, np.newaxis]]


ROW = Row(
    published=(16, 16, REGULAR, 1 / 16),
    oracle=two_before,
    outcomes=zero_and_symbols,
    floor_rules=zero_or_most_frequent,
    output_length=lambda length: length,
    enumerated_lengths=range(1, 4),
    floor_examples=4096,
)


def test_symbols_are_uniform():
    batch = TwoBack().sample((1, 2), 200, 500)
    inputs = batch["inputs"].numpy()
    assert (inputs[:, 0] == 0).all()
    counts = collections.Counter(inputs[:, 1:].ravel().tolist())
    assert_counts_follow(counts, dict.fromkeys(range(1, 16), 1 / 15))


@pytest.mark.parametrize("length", [1, 3, 30])
def test_positions_without_tokens(length):
    zeros = min(length, 3)
    expected = (zeros + (length - zeros) / 15) / length
    assert TwoBack().position_only_accuracy(length) == pytest.approx(
        expected, abs=0.01
    )
