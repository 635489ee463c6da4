"""Intervals of groups hold the true value as often as they say."""

import numpy as np
import pytest
from scipy import stats

from keras_lengen.evaluation.intervals import (
    jackknife_estimate,
    student_estimate,
    student_quantile,
    wilson_interval,
)

KINDS = {
    "shares": (True, lambda g, n: g.random(n) < 0.3, 0.3),
    "rare": (True, lambda g, n: g.random(n) < 0.02, 0.02),
    "losses": (False, lambda g, n: g.exponential(0.95, n), 0.95),
    "numbers": (False, lambda g, n: 5 + g.normal(size=n), 5),
}


@pytest.mark.parametrize("hits", [0, 1, 17, 49, 50])
def test_a_test_rejects_no_share_of_the_interval(hits):
    expected = stats.binomtest(hits, 50).proportion_ci(method="wilson")
    assert wilson_interval(hits / 50, 50) == pytest.approx(
        [*expected], abs=1e-4
    )


@pytest.mark.parametrize("kind", KINDS)
def test_jackknife(kind):
    is_share, draw, true = KINDS[kind]
    generator = np.random.default_rng(0)
    hits = []
    for _ in range(2000):
        values = draw(generator, 400).astype("float64")
        groups = values.reshape(20, -1).sum(axis=1)
        without = (groups.sum() - groups) / 380
        value, low, high = jackknife_estimate(
            values.mean(), without, 400, is_share=is_share
        )
        assert low <= value <= high
        hits.append(low <= true <= high)
    # Four deviations of a share of 2,000.
    assert abs(np.mean(hits) - 0.95) < 0.02


@pytest.mark.parametrize("level", [0.05, 0.01, 1e-4])
@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 9, 30, 501])
def test_student(freedom, level):
    wanted = stats.t.ppf(1 - level / 2, freedom)
    assert student_quantile(freedom, level) == pytest.approx(wanted)
    values = np.random.default_rng(0).normal(7, 2, freedom + 1)
    wanted = stats.t.interval(0.95, freedom, values.mean(), stats.sem(values))
    assert student_estimate(values)[1:] == pytest.approx(wanted)
    assert np.isnan(student_estimate(values[:1]).low)


def test_equal_values():
    """No variance is seen: shares keep the interval of so many trials."""
    found = jackknife_estimate(1.0, np.ones(20), 400, is_share=True)
    assert 0.98 < found.low < 0.995
    assert found.high == 1
    loss = jackknife_estimate(0.5, np.full(20, 0.5), 400, is_share=False)
    assert loss == (0.5, 0.5, 0.5)
    one = jackknife_estimate(0.5, np.array([]), 1, is_share=True)
    assert np.isnan([one.low, one.high]).all()
