import math

import numpy as np
import pytest

from datasets import floors


@pytest.mark.parametrize("trials", [0, 17, 500])
def test_binomial_probabilities(trials):
    ways = [math.comb(trials, k) * 4 ** (trials - k) for k in range(trials + 1)]
    found = floors.compute_binomial_probabilities(trials, 1 / 5)
    expected = [count / 5**trials for count in ways]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)
