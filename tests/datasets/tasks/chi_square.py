"""Whether counts and numbers could have come from given distributions."""

import numpy as np
from scipy import stats


def assert_counts_follow(counts, probabilities):
    """Pearson's test, passed by chance alone all but once in 30,000 times.

    Args:
        counts: How often each outcome was seen, by outcome.
        probabilities: Probability of each outcome, by outcome. An outcome
            that is not listed must not be seen at all.
    """
    assert set(counts) <= set(probabilities), "an impossible outcome"
    if len(probabilities) > 1:
        seen = [counts.get(outcome, 0) for outcome in probabilities]
        expected = sum(seen) * np.array(list(probabilities.values()))
        assert stats.chisquare(seen, expected).pvalue > 1 / 30_000


def assert_drawn_from(distribution, numbers):
    """Kolmogorov's test of a distribution of SciPy, as good as the other."""
    found = stats.kstest(np.ravel(numbers), distribution.cdf)
    assert found.pvalue > 1 / 30_000
