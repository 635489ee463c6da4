"""Indirect indexing: keys, distances within the text, a small vocabulary."""

import collections
import itertools

import numpy as np

from datasets.tasks.indirect_indexing import IndirectIndexing
from tests.datasets.tasks import row


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


def find_key(inputs, targets):
    return np.argmax(inputs[:, :-2] == inputs[:, -2:-1], axis=1)


def find_distances(inputs, targets):
    """The words for distances where all of them stay within the text."""
    place = find_key(inputs, targets)
    return inputs[(place >= 4) & (place < inputs.shape[1] - 6), -1]


def make_row(symbols, keys, reach, **fields):
    ids = symbols + keys
    return row.Row(
        published=(ids + 2 * reach, ids, row.REGULAR, 1 / 32),
        oracle=token_at_the_distance(symbols, keys, reach),
        outcomes=texts_with_keys(symbols, keys, reach),
        floor_rules=row.most_frequent(range(symbols)),
        input_length=lambda length: max(length, 4),
        floor_examples=4096,
        **fields,
    )


ROW = make_row(
    *(16, 16, 4),
    laws=(
        *(
            row.Law(
                length,
                2000,
                lambda inputs, targets: np.stack(
                    [
                        (inputs[:, :-2] >= 16).sum(axis=1),
                        (inputs[:, :-2] >= 32).sum(axis=1),
                    ],
                    axis=1,
                ),
                row.always(4, 0),
            )
            for length in (10, 11, 400)
        ),
        row.Law(
            102,
            20_000,
            lambda inputs, targets: find_key(inputs, targets) // 20,
            row.uniform(range(5)),
        ),
        row.Law(102, 20_000, find_distances, row.uniform(range(32, 40))),
    ),
    small=make_row(
        *(2, 2, 1),
        task=IndirectIndexing(
            input_vocabulary_size=6, output_vocabulary_size=4
        ),
        enumerated_lengths=range(1, 7),
    ),
)
