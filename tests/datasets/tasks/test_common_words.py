"""Common words: how often words occur, and where."""

import collections

import numpy as np

from tests.datasets.tasks import row


def three_most_frequent(tokens):
    ranked = collections.Counter(tokens).most_common()
    assert ranked[0][1] == ranked[2][1] > ranked[3][1]
    return sorted(word for word, _ in ranked[:3])


def most_frequent_word(inputs):
    first = [np.bincount(words, minlength=1000).argmax() for words in inputs]
    return [np.array(first)[:, np.newaxis]]


def count_repetitions(inputs, targets):
    """Of the three common words, and the least and the most of others."""
    found = []
    for tokens in inputs.tolist():
        counts = sorted(collections.Counter(tokens).values(), reverse=True)
        found.append((*counts[:3], counts[3], counts[-1]))
    return found


def find_first_word(inputs, targets):
    return np.nonzero(inputs == targets[:, :1])[1]


ROW = row.Row(
    published=(1000, 1000, row.CONTEXT_SENSITIVE, 1 / 1000),
    oracle=three_most_frequent,
    outcomes=lambda length: {},
    floor_rules=most_frequent_word,
    input_length=lambda length: max(length, 7),
    output_length=lambda tokens: 3,
    enumerated_lengths=range(0),
    laws=(
        *(
            row.Law(
                length,
                20,
                count_repetitions,
                {(common, common, common, most, 1): 1.0},
            )
            for length, common, most in ((24, 4, 1), (2000, 18, 2))
        ),
        row.uniform_law(20, lambda inputs, targets: targets.ravel() // 50, 20),
        row.uniform_law(20, find_first_word, 20),
    ),
)
