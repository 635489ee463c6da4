"""Indirect indexing: keys, distances within the text, a small vocabulary."""

import collections
import itertools

import numpy as np
import pytest

from datasets.tasks.indirect_indexing import IndirectIndexing
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import REGULAR, Row


def distances(reach):
    return [*range(-reach, 0), *range(1, reach + 1)]


def token_at_the_distance(symbols, keys, reach):
    def oracle(tokens):
        *text, key, word = tokens
        assert text.count(key) == 1
        place = text.index(key) + distances(reach)[word - symbols - keys]
        assert 0 <= place < len(text)
        return [text[place]]

    return oracle


def texts_with_keys(symbols, keys, reach):
    def outcomes(length):
        size = max(length, 4) - 2
        count = min(size // 2, 4, keys)
        found = collections.Counter()
        for places, names, values in itertools.product(
            itertools.permutations(range(size), count),
            itertools.permutations(range(symbols, symbols + keys), count),
            itertools.product(range(symbols), repeat=size - count),
        ):
            text, waiting = [None] * size, list(values)
            for place, name in zip(places, names, strict=True):
                text[place] = name
            text = [waiting.pop() if t is None else t for t in text]
            inside = [
                number
                for number, distance in enumerate(distances(reach))
                if 0 <= places[0] + distance < size
            ]
            for number in inside:
                asked = names[0], symbols + keys + number
                found[(*text, *asked)] += 1 / len(inside)
        return {key: count / found.total() for key, count in found.items()}

    return outcomes


def make_row(symbols, keys, reach, **fields):
    def most_frequent_symbol(inputs):
        text = inputs[:, :-2]
        counts = [(text == symbol).sum(axis=1) for symbol in range(symbols)]
        return [np.argmax(counts, axis=0)[:, np.newaxis]]

    ids = symbols + keys
    return Row(
        published=(ids + 2 * reach, ids, REGULAR, 1 / 32),
        oracle=token_at_the_distance(symbols, keys, reach),
        outcomes=texts_with_keys(symbols, keys, reach),
        floor_rules=most_frequent_symbol,
        input_length=lambda length: max(length, 4),
        floor_examples=4096,
        **fields,
    )


ROW = make_row(16, 16, 4)
SMALL_ROW = make_row(
    2,
    2,
    1,
    task=IndirectIndexing(input_vocabulary_size=6, output_vocabulary_size=4),
    enumerated_lengths=range(1, 7),
)


@pytest.mark.parametrize("length", [10, 11, 400])
def test_four_keys_and_all_distances(length):
    inputs = IndirectIndexing().sample((1, 2), 2000, length)["inputs"].numpy()
    text, key, word = inputs[:, :-2], inputs[:, -2], inputs[:, -1]
    assert ((text >= 16).sum(axis=1) == 4).all()
    assert (text < 32).all()
    assert ((text == key[:, np.newaxis]).sum(axis=1) == 1).all()
    assert set(word.tolist()) == set(range(32, 40))


def test_the_key_is_anywhere_and_distances_are_uniform_in_the_middle():
    inputs = IndirectIndexing().sample((1, 2), 20_000, 102)["inputs"].numpy()
    places = np.argmax(inputs[:, :-2] == inputs[:, -2:-1], axis=1)
    counts = collections.Counter((places // 20).tolist())
    assert_counts_follow(counts, dict.fromkeys(range(5), 0.2))
    middle = (places >= 4) & (places < 96)
    counts = collections.Counter(inputs[middle, -1].tolist())
    assert_counts_follow(counts, dict.fromkeys(range(32, 40), 1 / 8))
