"""Local count: runs of symbols in a smaller task."""

import collections
import itertools

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


def make_row(symbols, longest):
    return row.Row(
        published=(symbols, longest, row.REGULAR, 1 / 48),
        oracle=equal_tokens_before,
        outcomes=make_runs(symbols, longest),
        output_length=lambda length: length,
        floor_examples=4096,
    )


ROW = row.with_small(make_row(16, 48), make_row(3, 4), LocalCount, range(1, 8))
