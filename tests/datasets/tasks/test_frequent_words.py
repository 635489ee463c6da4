"""Frequent words: counts by rank, and uniform words and places."""

import collections
import math

import numpy as np
import pytest

from datasets.tasks.frequent_words import FrequentWords
from tests.datasets.tasks import row


def three_most_frequent(tokens):
    counts = collections.Counter(token for token in tokens if token)
    ranked = counts.most_common()
    assert len({count for _, count in ranked[:3]}) == 3, "a tie"
    assert len(ranked) == 3 or ranked[3][1] < ranked[2][1], "a tie"
    return [word - 1 for word, _ in ranked[:3]]


ROW = row.Row(
    published=(129, 128, row.CONTEXT_SENSITIVE, 1 / 128),
    oracle=three_most_frequent,
    outcomes=lambda length: {},
    floor_rules=row.most_frequent(range(1, 129)),
    input_length=lambda length: max(length, 10),
    output_length=lambda tokens: 3,
    enumerated_lengths=range(0),
    laws=(
        row.uniform_law(50, lambda inputs, targets: targets[:, 2], 128),
        row.uniform_law(
            20,
            lambda inputs, targets: np.nonzero(inputs == 1 + targets[:, :1])[1],
            20,
        ),
    ),
)


@pytest.mark.parametrize("length", [10, 4096])
def test_counts_follow_the_zeta_distribution(length):
    inputs = FrequentWords().sample((1, 2), 20, length)["inputs"].numpy()
    zeta = sum(1 / rank**2 for rank in range(1, 10**6))
    expected = [
        math.floor(length / rank**2 / zeta) + max(5 - rank, 0)
        for rank in range(2, 130)
    ]
    expected = [count for count in expected if count]
    for tokens in inputs.tolist():
        counts = collections.Counter(tokens)
        assert counts.pop(0) == length - sum(expected)
        assert sorted(counts.values(), reverse=True) == expected
