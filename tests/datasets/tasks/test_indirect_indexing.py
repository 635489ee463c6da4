import collections
import itertools

from datasets.tasks.indirect_indexing import IndirectIndexing
from tests.datasets.tasks import row


def distances(reach):
    return [*range(-reach, 0), *range(1, reach + 1)]


def token_at_the_distance(symbols, keys, reach):
    def oracle(tokens):
        *text, key, word = tokens
        found = sum(symbols <= token < symbols + keys for token in text)
        assert found == min(len(text) // 2, 4, keys)
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


def make_row(symbols, keys, reach):
    ids = symbols + keys
    return row.Row(
        published=(ids + 2 * reach, ids, row.REGULAR, 1 / 32),
        oracle=token_at_the_distance(symbols, keys, reach),
        outcomes=texts_with_keys(symbols, keys, reach),
        floor_rules=row.most_frequent(range(symbols)),
        input_length=lambda length: max(length, 4),
        floor_examples=4096,
    )


ROW = row.with_small(
    make_row(16, 16, 4), make_row(2, 2, 1), IndirectIndexing, range(1, 7)
)
