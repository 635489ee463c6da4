"""Rows of a table in which every pair of values of two factors occurs.

A product of tables has a test for each combination. A covering array of
strength 2 has as few as bring each pair of values together once: each row is
the one that covers most of the pairs still missing (Cohen et al., 1997,
section 3).
"""

import itertools


def cover(*factors, keep=lambda *row: True):
    """Returns rows of values, one of each factor, that cover all pairs.

    Args:
        factors: Sequences of values.
        keep: Called with the values of a row; false where they do not go
            together. Pairs that no such row has are not covered.

    Returns:
        A list of tuples, in an order that depends on nothing but the factors.
    """
    sizes = [range(len(factor)) for factor in factors]
    candidates = [
        row
        for row in itertools.product(*sizes)
        if keep(*(values[i] for values, i in zip(factors, row, strict=True)))
    ]
    pairs = {
        row: set(itertools.combinations(enumerate(row), 2))
        for row in candidates
    }
    missing = set().union(*pairs.values())
    rows = []
    while missing:
        best = max(candidates, key=lambda row: len(pairs[row] & missing))
        missing -= pairs[best]
        rows.append(best)
    return [
        tuple(values[i] for values, i in zip(factors, row, strict=True))
        for row in rows
    ]
