"""Frequent words: counts by rank, and uniform words and places."""

import collections
import math

import numpy as np
import pytest

from datasets.tasks.frequent_words import FrequentWords
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import CONTEXT_SENSITIVE, Row


def three_most_frequent(tokens):
    counts = collections.Counter(token for token in tokens if token)
    ranked = counts.most_common()
    assert len({count for _, count in ranked[:3]}) == 3, "a tie"
    assert len(ranked) == 3 or ranked[3][1] < ranked[2][1], "a tie"
    return [word - 1 for word, _ in ranked[:3]]


def most_frequent_word(inputs):
    counts = [(inputs == word).sum(axis=1) for word in range(1, 129)]
    return [np.argmax(counts, axis=0)[:, np.newaxis]]


ROW = Row(
    published=(129, 128, CONTEXT_SENSITIVE, 1 / 128),
    oracle=three_most_frequent,
    outcomes=lambda length: {},
    floor_rules=most_frequent_word,
    input_length=lambda length: max(length, 10),
    output_length=lambda tokens: 3,
    enumerated_lengths=range(0),
)


@pytest.mark.parametrize("length", [10, 100, 4096])
def test_counts_follow_the_zeta_distribution(length):
    inputs = FrequentWords().sample((1, 2), 20, length)["inputs"].numpy()
    zeta = sum(1 / rank**2 for rank in range(1, 10**6))
    expected = [
        math.floor(length / rank**2 / zeta) + max(5 - rank, 0)
        for rank in range(2, 130)
    ]
    expected = [count for count in expected if count]
    for row in inputs.tolist():
        counts = collections.Counter(row)
        assert counts.pop(0) == length - sum(expected)
        assert sorted(counts.values(), reverse=True) == expected


def test_words_are_uniform_and_distinct():
    targets = FrequentWords().sample((1, 2), 20_000, 50)["targets"].numpy()
    assert all(len(set(row)) == 3 for row in targets.tolist())
    for column in targets.T:
        counts = collections.Counter(column.tolist())
        assert_counts_follow(counts, dict.fromkeys(range(128), 1 / 128))


def test_places_are_uniform():
    batch = FrequentWords().sample((1, 2), 20_000, 20)
    places = np.argwhere(batch["inputs"] == 1 + batch["targets"][:, :1])[:, 1]
    counts = collections.Counter(places.tolist())
    assert_counts_follow(counts, dict.fromkeys(range(20), 1 / 20))
