import pytest
from scipy import stats

from trainers.answers.problem import find_interval


@pytest.mark.parametrize("right", [0, 1, 17, 49, 50])
def test_interval_has_the_shares_that_a_test_does_not_reject(right):
    expected = stats.binomtest(right, 50).proportion_ci(method="wilson")
    assert find_interval(right, 50) == pytest.approx([*expected], abs=1e-3)
