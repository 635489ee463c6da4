import numpy as np
import pytest

from keras_lengen.layers import HardALiBi, MultiHeadAttention


def visible(positions, heads, *, causal=True, **kwargs):
    query = np.ones((1, len(positions), heads, 4), "float32")
    bias = HardALiBi(**kwargs)(
        query, positions=np.array(positions), causal=causal
    )
    bias = np.asarray(bias)[0]
    assert set(np.unique(bias)) <= {0, np.float32(-1e9)}
    return bias == 0


@pytest.mark.parametrize(
    ("heads", "arguments", "windowed"),
    [(4, {}, 2), (1, {}, 1), (4, {"windowed_heads": 4}, 4)],
)
def test_windows(heads, arguments, windowed):
    positions = [0, 1, 2, 3, 5, 4]
    seen = visible(positions, heads, **arguments)
    for head in range(heads):
        for i, query in enumerate(positions):
            for j, key in enumerate(positions):
                expected = head >= windowed or abs(query - key) <= head
                assert seen[head, i, j] == expected


def test_published_example():
    """The last query of the second head sees the last two tokens."""
    seen = visible(range(4), 16, windowed_heads=8)
    assert np.flatnonzero(seen[1, 3, :4]).tolist() == [2, 3]


def test_hidden_keys_have_no_weight():
    attention = MultiHeadAttention(2, 4, encoding=HardALiBi())
    x = np.random.default_rng(0).normal(size=(1, 5, 8)).astype("float32")
    _, weights = attention(
        x, x, use_causal_mask=True, return_attention_scores=True
    )
    # Hidden keys have no weight at all; a softmax sums to 1 after rounding.
    weights = np.asarray(weights)[0, 0]
    np.testing.assert_allclose(weights, np.eye(5), rtol=1e-6)


def test_too_few_heads_raise():
    with pytest.raises(ValueError, match=r"windowed_heads=3 .* heads, 2"):
        HardALiBi(windowed_heads=3).build((1, 4, 2, 8))
    with pytest.raises(ValueError, match=r"windowed_heads .* got 0"):
        HardALiBi(windowed_heads=0)
