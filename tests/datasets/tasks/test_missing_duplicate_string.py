"""Missing duplicate string: the gap, the filler and the shortest lengths."""

import numpy as np

from tests.datasets.tasks import row


def hidden_bit(tokens):
    if tokens == [1]:
        return [1]
    string = [token for token in tokens if token != 3]
    place = string.index(2)
    return [string[place - len(string) // 2]]


def is_doubled(tokens):
    half = len(tokens) // 2
    copies = zip(tokens[:half], tokens[half : 2 * half], strict=True)
    pairs = [{*pair} for pair in copies]
    hidden = [pair for pair in pairs if pair in ({0, 2}, {1, 2})]
    others = [pair for pair in pairs if pair in ({0}, {1})]
    return tokens == (1,) or (
        (len(hidden), len(others)) == (1, half - 1)
        and tokens[2 * half :] in ((), (3,))
    )


def find_gap(inputs, targets):
    assert ((inputs == 2).sum(axis=1) == 1).all()
    return (inputs == 2).argmax(axis=1)


def compare_parities(inputs, targets):
    """A doubled string has even parity: a shortcut that needs no order."""
    return (inputs == 1).sum(axis=1) % 2 == targets[:, 0]


def compare_fillers(inputs, targets):
    """Whether there is a filler at the end alone."""
    filler = np.arange(inputs.shape[1]) >= inputs.shape[1] // 2 * 2
    return ((inputs == 3) == filler).all(axis=1)


ROW = row.Row(
    published=(4, 2, row.CONTEXT_SENSITIVE, 0.5),
    oracle=hidden_bit,
    outcomes=row.valid_strings(4, is_doubled),
    floor_rules=row.threshold_on_ones,
    enumerated_lengths=range(1, 9),
    # One bit: the visible one is the hidden one. Two bits: 0 or 2 ones are
    # visible over a 0, and 1 or 3 over a 1; any threshold errs on one of four.
    floors={1: (1, 1), 2: (1, 1 / 2), 3: (1, 1 / 2), 4: (3 / 4, 1 / 2)},
    laws=tuple(
        law
        for length in (40, 41, 500)
        for law in (
            row.Law(
                length, 20_000, find_gap, row.uniform(range(length // 2 * 2))
            ),
            *(
                row.Law(length, 20_000, find, row.always(True))
                for find in (compare_parities, compare_fillers)
            ),
        )
    ),
)
