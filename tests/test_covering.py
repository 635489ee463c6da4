"""Covering arrays."""

import itertools

from tests.covering import cover

FACTORS = (["a", "b", "c"], [1, 2, 3, 4], [None, True], [0.5, 0.6])


def pairs_of(rows):
    return {
        pair
        for row in rows
        for pair in itertools.combinations(enumerate(row), 2)
    }


def test_all_pairs_occur_in_few_rows():
    rows = cover(*FACTORS)
    assert pairs_of(rows) == pairs_of(itertools.product(*FACTORS))
    # The two longest factors alone need 12.
    assert 12 <= len(rows) <= 14


def test_rows_that_do_not_go_together_are_left_out():
    def keep(letter, number, *_):
        return letter != "a" or number > 2

    rows = cover(*FACTORS, keep=keep)
    assert all(keep(*row) for row in rows)
    allowed = [row for row in itertools.product(*FACTORS) if keep(*row)]
    assert pairs_of(rows) == pairs_of(allowed)
