import numpy as np
import pytest
from scipy import stats

from datasets import floors


@pytest.mark.parametrize("trials", [0, 17, 500])
def test_binomial_probabilities(trials):
    found = floors.compute_binomial_probabilities(trials, 1 / 5)
    expected = stats.binom.pmf(np.arange(trials + 1), trials, 1 / 5)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)
