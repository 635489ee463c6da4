"""Local count: runs of symbols, and the counts of a smaller task."""

import collections
import itertools

import numpy as np

from datasets.tasks.local_count import LocalCount
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import REGULAR, Row, constants


def equal_tokens_before(tokens):
    counts = []
    for place, token in enumerate(tokens):
        repeated = place and token == tokens[place - 1]
        counts.append(counts[-1] + 1 if repeated else 0)
    return counts


def make_runs(symbols, longest):
    """The outcomes of runs of 2 to `longest` tokens."""

    def outcomes(length):
        found = collections.Counter()

        def extend(tokens, probability):
            if len(tokens) >= length:
                found[tokens[:length]] += probability
                return
            others = [s for s in range(symbols) if s not in tokens[-1:]]
            for symbol, run in itertools.product(others, range(2, longest + 1)):
                share = probability / len(others) / (longest - 1)
                extend(tokens + (symbol,) * run, share)

        extend((), 1.0)
        return dict(found)

    return outcomes


def make_row(symbols, longest, **fields):
    return Row(
        published=(symbols, longest, REGULAR, 1 / 48),
        oracle=equal_tokens_before,
        outcomes=make_runs(symbols, longest),
        floor_rules=constants(longest),
        output_length=lambda length: length,
        floor_examples=4096,
        **fields,
    )


ROW = make_row(16, 48)
SMALL_ROW = make_row(
    3,
    4,
    task=LocalCount(input_vocabulary_size=3, output_vocabulary_size=4),
    enumerated_lengths=range(1, 8),
)


def test_whole_runs_have_any_length():
    batch = LocalCount().sample((1, 2), 500, 2000)
    targets = batch["targets"].numpy()
    # Runs that begin early enough are whole, whatever their length.
    lengths = []
    for row in targets.tolist():
        starts = [place for place, count in enumerate(row) if not count]
        lengths += [
            stop - start
            for start, stop in itertools.pairwise(starts)
            if stop < 1000
        ]
    # Stopping at a place prefers short runs a little: look at the first ones.
    first = [
        next(place for place, count in enumerate(row) if place and not count)
        for row in targets.tolist()
    ]
    assert min(lengths) == 2 and max(lengths) == 48
    counts = collections.Counter((length - 2) // 12 for length in first)
    shares = np.bincount((np.arange(2, 49) - 2) // 12) / 47
    assert_counts_follow(counts, dict(enumerate(shares)))


def test_next_symbol_is_any_other():
    inputs = LocalCount().sample((1, 2), 2000, 200)["inputs"].numpy()
    steps = (inputs[:, 1:] - inputs[:, :-1]) % 16
    counts = collections.Counter(steps[steps > 0].tolist())
    assert_counts_follow(counts, dict.fromkeys(range(1, 16), 1 / 15))
