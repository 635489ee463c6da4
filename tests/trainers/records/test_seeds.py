"""Means of seeds, and their intervals."""

import math

import pytest

from tests.trainers.toy import stand_in_problem
from trainers.engine.problem import Metric
from trainers.records.seeds import estimate_score, merge_seeds


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
