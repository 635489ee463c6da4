import numpy as np
import pytest

from keras_lengen.layers import NAPE, MultiHeadAttention


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("heads", "slopes"),
    [
        (1, [1]),
        (3, [1, 0, 0]),
        (8, [1, 1 / 2, 1 / 3, 1 / 4, 0, 0, 0, 0]),
    ],
)
def test_definition(heads, slopes, causal):
    positions = np.array([[0, 1.5, 7, 3, 900], [5, 6, 7, 8, 9]])
    query = np.ones((2, 5, heads, 4), "float32")
    bias = NAPE()(query, positions=positions, causal=causal)
    distances = abs(positions[:, None, :, None] - positions[:, None, None, :])
    expected = -np.array(slopes)[:, None, None] * distances
    np.testing.assert_allclose(bias, expected, rtol=1e-6)


def test_the_second_half_of_the_heads_has_no_positions():
    attention = MultiHeadAttention(4, 8, encoding=NAPE())
    x = np.random.default_rng(0).normal(size=(1, 6, 16)).astype("float32")
    near, far = (
        np.asarray(
            attention(
                x,
                x,
                positions=scale * np.arange(6),
                return_attention_scores=True,
            )[1]
        )[0]
        for scale in (1, 5)
    )
    np.testing.assert_array_equal(near[2:], far[2:])
    for one, other in zip(near[:2], far[:2], strict=True):
        assert np.abs(one - other).max() > 0.05
