"""Common words: how often words occur, and where."""

import collections

import numpy as np
import pytest

from datasets.tasks.common_words import CommonWords
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import CONTEXT_SENSITIVE, Row


def three_most_frequent(tokens):
    ranked = collections.Counter(tokens).most_common()
    assert ranked[0][1] == ranked[2][1] > ranked[3][1]
    return sorted(word for word, _ in ranked[:3])


def most_frequent_word(inputs):
    first = [np.bincount(row, minlength=1000).argmax() for row in inputs]
    return [np.array(first)[:, np.newaxis]]


ROW = Row(
    published=(1000, 1000, CONTEXT_SENSITIVE, 1 / 1000),
    oracle=three_most_frequent,
    outcomes=lambda length: {},
    floor_rules=most_frequent_word,
    input_length=lambda length: max(length, 7),
    output_length=lambda tokens: 3,
    enumerated_lengths=range(0),
)


@pytest.mark.parametrize(
    ("length", "common", "others"),
    [
        (7, 2, {1}),
        (24, 4, {1}),
        (36, 6, {1}),
        (900, 6, {1}),
        (2000, 18, {1, 2}),
    ],
)
def test_how_often_words_occur(length, common, others):
    inputs = CommonWords().sample((1, 2), 20, length)["inputs"].numpy()
    for row in inputs.tolist():
        counts = sorted(collections.Counter(row).values(), reverse=True)
        assert counts[:3] == [common] * 3
        assert set(counts[3:]) == others


def test_words_and_places_are_uniform():
    batch = CommonWords().sample((1, 2), 20_000, 20)
    counts = collections.Counter(batch["targets"].numpy().ravel() // 50)
    assert_counts_follow(counts, dict.fromkeys(range(20), 1 / 20))
    lowest = batch["inputs"] == batch["targets"][:, :1]
    places = collections.Counter(np.argwhere(lowest)[:, 1].tolist())
    assert_counts_follow(places, dict.fromkeys(range(20), 1 / 20))
