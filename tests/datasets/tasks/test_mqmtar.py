"""MQMTAR: one pair in all ways, and the choice among four."""

import itertools

from datasets.tasks.mqmtar import MQMTAR
from tests.datasets.tasks import row


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
    return row.Row(
        published=(3 + symbols, symbols, row.REGULAR, 1 / 16),
        oracle=look_up,
        outcomes=words_of(symbols),
        floor_rules=row.most_frequent(range(3, 3 + symbols)),
        input_length=lambda length: max(length, 6) + 12,
        output_length=lambda tokens: 8,
        floor_examples=4096,
        **fields,
    )


def find_asked_pair(inputs, targets):
    """The number of the pair of four that the last query asks for."""
    words = inputs[:, :28].reshape(-1, 4, 7).tolist()
    found = []
    for parts, asked in zip(words, inputs[:, -2:].tolist(), strict=True):
        listed = [[token for token in part if token][:2] for part in parts]
        found.append(listed.index(asked))
    return found


CHOICES = row.Law(30, 5000, find_asked_pair, row.uniform(range(4)))
ROW = row.with_small(
    make_row(16, laws=(CHOICES,)), make_row(2), MQMTAR, range(5, 12)
)
