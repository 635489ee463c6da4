import math

import numpy as np
import pytest

from datasets import floors


@pytest.mark.parametrize("trials", [0, 1, 2, 17, 500])
@pytest.mark.parametrize("fifths", [1, 2, 4])
def test_binomial_probabilities(trials, fifths):
    expected = [
        math.comb(trials, k)
        * fifths**k
        * (5 - fifths) ** (trials - k)
        / 5**trials
        for k in range(trials + 1)
    ]
    np.testing.assert_allclose(
        floors.compute_binomial_probabilities(trials, fifths / 5),
        expected,
        rtol=1e-9,
        atol=1e-15,
    )
