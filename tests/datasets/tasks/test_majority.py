"""Majority: strings without ties are equally likely."""

import collections
import itertools

from datasets.tasks.majority import Majority
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import (
    CONTEXT_SENSITIVE,
    Row,
    constants,
    equally_likely,
)


def most_frequent_letter(letters):
    (letter, count), *others = collections.Counter(letters).most_common()
    assert all(other < count for _, other in others), "a tie"
    return [letter]


def strings_without_ties(letters):
    def outcomes(length):
        found = []
        for string in itertools.product(range(letters), repeat=length):
            counts = sorted(map(string.count, range(letters)))
            if counts[-1] > counts[-2]:
                found.append(string)
        return equally_likely(found)

    return outcomes


def make_row(letters, **fields):
    return Row(
        published=(letters, letters, CONTEXT_SENSITIVE, 1 / 26),
        oracle=most_frequent_letter,
        outcomes=strings_without_ties(letters),
        floor_rules=constants(letters),
        **fields,
    )


ROW = make_row(26)
SMALL_ROW = make_row(
    3,
    task=Majority(input_vocabulary_size=3, output_vocabulary_size=3),
    enumerated_lengths=range(1, 7),
)


def test_all_letters_win_equally_often():
    targets = Majority().sample((1, 2), 20_000, 150)["targets"].numpy()
    counts = collections.Counter(targets.ravel().tolist())
    assert_counts_follow(counts, dict.fromkeys(range(26), 1 / 26))
