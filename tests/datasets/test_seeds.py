import itertools

from datasets.seeds import fold_in


def test_seeds_differ_by_every_number():
    seeds = {
        tuple(fold_in(*numbers).numpy())
        for numbers in itertools.product((0, 1, -1), (0, 1, 7), (0, 1))
    }
    assert len(seeds) == 18
