"""Means of seeds, and their intervals."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.trainers.toy import stand_in_problem
from trainers.engine.problem import Metric
from trainers.records.seeds import (
    choose_best,
    estimate_score,
    find_deviation,
    merge_seeds,
)


@pytest.mark.parametrize(
    ("values", "bounds"),
    [
        # Of losses, bounds may be negative; 4.303 is for three seeds.
        ([0.1, 0.2, 0.3], [0.2 - 4.303 * 0.1 / 3**0.5, 0.4484]),
        ([0.1, math.inf], None),
        ([0.2, 0.2], None),
        ([0.2], None),
    ],
)
def test_intervals_of_losses(values, bounds):
    problem = stand_in_problem(3, metrics=(Metric("loss", "nats", False),))
    runs = [
        {
            "config": {"seed": seed},
            "score_metric": "loss",
            "final": {"loss_by_length": {"5": value}, "score": value},
        }
        for seed, value in enumerate(values)
    ]
    merged = merge_seeds(runs, problem)
    value, *found = estimate_score(merged, problem)
    assert value == pytest.approx(sum(values) / len(values))
    assert merged["seeds"] == len(values)
    if bounds is None:
        assert found == [None, None]
    else:
        assert found == pytest.approx(bounds, abs=1e-4)
        by_length = merged["final"]["loss_high_by_length"]
        assert by_length["5"] == pytest.approx(bounds[1], abs=1e-4)


def test_two_settings_differ_as_in_a_t_test():
    rng = np.random.default_rng(0)
    for difference in (0, 1, 2, 3):
        drawn = rng.normal(0, 1, 4), rng.normal(difference, 1, 3)
        is_seen = stats.ttest_ind(*drawn).pvalue < 0.05
        found = choose_best(dict(zip("ab", drawn, strict=True)))
        assert (len(found) == 1) == is_seen
    found = find_deviation([(1, 2, 3), (5, 5)])
    assert found == pytest.approx((np.sqrt(2 / 3), 3))


def test_settings_are_rarely_told_apart_by_chance():
    rng = np.random.default_rng(0)
    false = 0
    for _ in range(500):
        scores = rng.normal(size=(6, 2))
        found = choose_best(dict(zip("abcdef", scores, strict=True)))
        # The setting that is best by chance, against the five others.
        false += len(found) == 1
    assert false / 500 < 0.05


def test_a_score_that_is_not_finite_is_not_the_best():
    scores = {"a": (0.5, 0.6), "b": (math.nan, 0.9), "c": (math.inf, 1)}
    assert choose_best(scores) == ["a"]
