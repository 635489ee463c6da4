import numpy as np
import pytest

from trainers.answers.problem import find_interval


@pytest.mark.parametrize("right", [0, 1, 17, 49, 50])
def test_interval_has_the_shares_that_a_test_does_not_reject(right):
    low, high = find_interval(right, 50)
    shares = np.linspace(0, 1, 20_001)[1:-1]
    deviation = np.sqrt(shares * (1 - shares) / 50)
    kept = shares[np.abs(right / 50 - shares) <= 1.96 * deviation]
    assert low == pytest.approx(kept.min(), abs=1e-3)
    assert high == pytest.approx(kept.max(), abs=1e-3)
