"""MQMTAR: the layout of pairs and queries, and an alphabet of two."""

import collections
import itertools

import numpy as np
import pytest

from datasets.tasks.mqmtar import MQMTAR
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import REGULAR, Row


def look_up(tokens):
    start = tokens.index(2)
    pairs = {}
    for place in range(start):
        if tokens[place] == 1:
            word = tuple(tokens[place - 2 : place])
            assert word not in pairs
            pairs[word] = [token - 3 for token in tokens[place + 1 :][:2]]
    answers = []
    for place in range(start, len(tokens), 3):
        assert tokens[place] == 2
        answers += pairs[tuple(tokens[place + 1 : place + 3])]
    return answers


def words_of(symbols):
    """All outcomes with one pair: lengths 1 to 14."""

    def outcomes(length):
        length = max(length, 6)
        words = list(itertools.product(range(3, 3 + symbols), repeat=2))
        found = {}
        for word, value, before in itertools.product(
            words, words, range(length - 5)
        ):
            pair = (*word, 1, *value)
            listed = (*[0] * before, *pair, *[0] * (length - 5 - before))
            found[(*listed, *(2, *word) * 4)] = (
                1 / len(words) ** 2 / (length - 5)
            )
        return found

    return outcomes


def make_row(symbols, **fields):
    def most_frequent_symbol(inputs):
        counts = [(inputs == 3 + s).sum(axis=1) for s in range(symbols)]
        return [np.argmax(counts, axis=0)[:, np.newaxis]]

    return Row(
        published=(3 + symbols, symbols, REGULAR, 1 / 16),
        oracle=look_up,
        outcomes=words_of(symbols),
        floor_rules=most_frequent_symbol,
        input_length=lambda length: max(length, 6) + 12,
        output_length=lambda tokens: 8,
        floor_examples=4096,
        **fields,
    )


ROW = make_row(16, enumerated_lengths=range(0))
SMALL_ROW = make_row(
    2,
    task=MQMTAR(input_vocabulary_size=5, output_vocabulary_size=2),
    enumerated_lengths=range(5, 12),
)


@pytest.mark.parametrize("length", [15, 64, 500])
def test_pairs_have_equal_shares(length):
    inputs = MQMTAR().sample((1, 2), 200, length)["inputs"].numpy()
    listed = inputs[:, :-12]
    pairs = int(0.8 * length // 6)
    assert ((listed == 1).sum(axis=1) == pairs).all()
    share = length // pairs
    parts = listed[:, : pairs * share].reshape(-1, share)
    assert ((parts == 1).sum(axis=1) == 1).all()
    assert (parts[:, -1] == 0).all()
    assert ((parts > 0).sum(axis=1) == 5).all()


def test_each_query_is_any_pair():
    inputs = MQMTAR().sample((1, 2), 5000, 30)["inputs"].numpy()
    words = inputs[:, :28].reshape(-1, 4, 7)
    rows = []
    for number in range(5000):
        listed = [
            [token for token in part if token][:2]
            for part in words[number].tolist()
        ]
        rows.append(listed.index(inputs[number, -2:].tolist()))
    assert_counts_follow(
        collections.Counter(rows), dict.fromkeys(range(4), 1 / 4)
    )


def test_published_alphabet():
    task = MQMTAR(input_vocabulary_size=259, output_vocabulary_size=256)
    inputs = task.sample((1, 2), 2, 4096)["inputs"].numpy()
    assert ((inputs == 1).sum(axis=1) == 546).all()
