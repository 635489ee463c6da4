"""Local count: runs of symbols, and the counts of a smaller task."""

import collections
import itertools

import numpy as np

from datasets.tasks.local_count import LocalCount
from tests.datasets.tasks import row


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


def find_first_runs(inputs, targets):
    """Lengths of the first runs; later whole ones are rather short."""
    return 1 + np.argmax(targets[:, 1:] == 0, axis=1)


def find_steps(inputs, targets):
    steps = (inputs[:, 1:] - inputs[:, :-1]) % 16
    return steps[steps > 0]


def make_row(symbols, longest, **fields):
    return row.Row(
        published=(symbols, longest, row.REGULAR, 1 / 48),
        oracle=equal_tokens_before,
        outcomes=make_runs(symbols, longest),
        floor_rules=row.constants(longest),
        output_length=lambda length: length,
        floor_examples=4096,
        **fields,
    )


ROW = make_row(
    *(16, 48),
    laws=(
        row.Law(60, 20_000, find_first_runs, row.uniform(range(2, 49))),
        row.Law(200, 2000, find_steps, row.uniform(range(1, 16))),
    ),
    small=make_row(
        *(3, 4),
        task=LocalCount(input_vocabulary_size=3, output_vocabulary_size=4),
        enumerated_lengths=range(1, 8),
    ),
)
