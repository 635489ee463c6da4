import numpy as np
import pytest

from tests.keras_lengen.layers.encodings.table import make_built, random_inputs
from tests.keras_lengen.models.small import with_random_weights

QUERY, KEY = random_inputs("bias")
NEAR = np.array([0, 1, 4, 30, 31, 63])
FAR = np.array([2, 60, 64, 65, 900, 2000.5])


def find_bias(encoding, positions):
    """Bias `(T, T, H)` of all pairs, by the definition."""
    c, m, hidden_kernel, hidden_bias, output_kernel, output_bias = (
        np.asarray(weight, "float64") for weight in encoding.weights
    )

    def f(x):
        return np.log(abs(c * x) + 1)

    threshold = abs(m * encoding.threshold)
    larger = np.maximum.outer(positions, positions)
    steps = np.subtract.outer(positions, positions)
    share = f(steps) / (f(np.maximum(larger, threshold)) + 1e-6)
    hidden = np.maximum(share[..., None] * hidden_kernel + hidden_bias, 0)
    return hidden @ output_kernel + output_bias


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("positions", [NEAR, FAR, np.stack([NEAR, FAR])])
def test_definition(positions, causal):
    """For past keys, it is the published causal form."""
    encoding = with_random_weights(make_built("FIRE", threshold=64))
    # A threshold of 32, whatever the sign.
    encoding.m.assign(-0.5)
    bias = encoding(QUERY, KEY, positions=positions, causal=causal)
    for example, own in zip(bias, np.atleast_2d(positions), strict=True):
        visible = np.tri(6, dtype=bool) if causal else np.ones((6, 6), bool)
        found = np.moveaxis(example, 0, -1)[visible]
        expected = find_bias(encoding, own)[visible]
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_it_starts_as_published():
    encoding = make_built("FIRE")
    weights = [float(each) for each in (encoding.c, encoding.m)]
    assert weights == pytest.approx([0.1, 1])
    assert encoding.threshold == 512
