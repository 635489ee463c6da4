"""MQAR: pairs, fillers beyond the number of keys, and a small vocabulary."""

import collections
import itertools

import numpy as np
import pytest

from datasets.tasks.mqar import MQAR
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import REGULAR, Row, equally_likely


def make_row(values, **fields):
    def count_pairs(length):
        return max(1, min(length // 4, values - 1))

    def look_up(tokens):
        store, queries, place = {}, [], 0
        while place < len(tokens):
            token = tokens[place]
            following = tokens[place + 1 : place + 2]
            if 0 < token < values and following and following[0] >= values:
                assert token not in store, "a key has two values"
                store[token] = following[0] - values
                place += 1
            elif token:
                queries.append(token)
            place += 1
        return [store[query] for query in queries]

    def outcomes(length):
        count = count_pairs(length)
        fillers = max(0, length - 4 * (values - 1))
        found = []
        for keys, answers, order, places in itertools.product(
            itertools.permutations(range(1, values), count),
            itertools.permutations(range(values, 2 * values), count),
            itertools.permutations(range(count)),
            itertools.combinations(range(count + fillers), count),
        ):
            items = [(0,)] * (count + fillers)
            for place, key, answer in zip(places, keys, answers, strict=True):
                items[place] = (key, answer)
            queries = [keys[number] for number in order]
            found.append((*itertools.chain(*items), *queries))
        return equally_likely(found)

    def lowest_value(inputs):
        present = np.where(inputs >= values, inputs, 2 * values)
        return [present.min(axis=1, keepdims=True) - values]

    return Row(
        published=(2 * values, values, REGULAR, 1 / 32),
        oracle=look_up,
        outcomes=outcomes,
        floor_rules=lowest_value,
        input_length=lambda length: (
            3 * count_pairs(length) + max(0, length - 4 * (values - 1))
        ),
        output_length=lambda tokens: min(tokens // 3, values - 1),
        **fields,
    )


ROW = make_row(32)
SMALL_ROW = make_row(
    3,
    task=MQAR(input_vocabulary_size=6, output_vocabulary_size=3),
    enumerated_lengths=range(1, 12),
)


@pytest.mark.parametrize("length", [64, 124, 125, 500])
def test_lengths_and_pairs(length):
    task = MQAR()
    batch = task.sample((1, 2), 100, length)
    inputs = batch["inputs"].numpy()
    pairs = min(length // 4, 31)
    assert ((inputs >= 32).sum(axis=1) == pairs).all()
    assert ((inputs == 0).sum(axis=1) == max(0, length - 124)).all()
    if length % 4 == 0 or length > 124:
        assert task.total_length(length) == length


def test_pairs_are_anywhere_among_fillers():
    inputs = MQAR().sample((1, 2), 4000, 500)["inputs"].numpy()
    # 31 pairs and 376 fillers: the first item is a pair 31 times in 407.
    counts = collections.Counter((inputs[:, 0] > 0).tolist())
    assert_counts_follow(counts, {True: 31 / 407, False: 376 / 407})


def test_published_vocabulary():
    task = MQAR(input_vocabulary_size=8192, output_vocabulary_size=4096)
    batch = task.sample((1, 2), 4, 1024)
    assert batch["targets"].shape == (4, 256)
    assert task.total_length(1024) == 1024


def test_unequal_halves_are_refused():
    with pytest.raises(ValueError, match="=64; got 8192"):
        MQAR(input_vocabulary_size=8192)
