"""Majority: strings without ties are equally likely."""

import collections

from datasets.tasks.majority import Majority
from tests.datasets.tasks import row


def most_frequent_letter(letters):
    assert has_a_winner(letters)
    return [collections.Counter(letters).most_common()[0][0]]


def has_a_winner(letters):
    ranked = collections.Counter(letters).most_common()
    return len(ranked) == 1 or ranked[0][1] > ranked[1][1]


def make_row(letters, **fields):
    return row.Row(
        published=(letters, letters, row.CONTEXT_SENSITIVE, 1 / 26),
        oracle=most_frequent_letter,
        outcomes=row.valid_strings(letters, has_a_winner),
        floor_rules=row.constants(letters),
        **fields,
    )


ROW = make_row(
    26,
    small=make_row(
        3,
        task=Majority(input_vocabulary_size=3, output_vocabulary_size=3),
        enumerated_lengths=range(1, 7),
    ),
)
