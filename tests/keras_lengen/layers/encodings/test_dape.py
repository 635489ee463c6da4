import numpy as np
import pytest

from keras_lengen.layers import (
    DAPE,
    ALiBi,
    LogKERPLE,
    RandomizedALiBi,
    RandomizedPositions,
    RoPE,
)
from tests.keras_lengen.models.small import added_parameters

HEADS = 3
QUERY, KEY = (
    np.random.default_rng(0).normal(size=(2, 2, 5, HEADS, 4)).astype("float32")
)


@pytest.mark.parametrize("causal", [False, True])
def test_the_formula(causal):
    inner = ALiBi()
    encoding = DAPE(encoding=inner, hidden_dim=7)
    bias = np.asarray(encoding(QUERY, KEY, causal=causal))
    plain = np.asarray(inner(QUERY, KEY, causal=causal))
    hidden_kernel, hidden_bias, output_kernel, output_bias = (
        np.asarray(weight).reshape(weight.shape[:2] if "kernel" in name else -1)
        for name, weight in (
            (weight.name, weight) for weight in encoding.weights
        )
    )
    for b, t, s in np.ndindex(2, 5, 5):
        scores = [QUERY[b, t, h] @ KEY[b, s, h] / 2 for h in range(HEADS)]
        own = plain[0, :, t, s]
        hidden = np.concatenate([scores, own]) @ hidden_kernel + hidden_bias
        hidden = np.where(hidden > 0, hidden, 0.01 * hidden)
        expected = own + hidden @ output_kernel + output_bias
        np.testing.assert_allclose(bias[b, :, t, s], expected, atol=1e-5)


def test_the_sampler_numbers_the_tokens_of_the_other_encoding():
    sampler = RandomizedPositions(max_position=64, seed=1)
    encoding = DAPE(encoding=ALiBi(), sampler=sampler)
    positions = np.array([0, 10, 20, 30, 60])
    given = encoding(QUERY, KEY, positions=positions)
    assert not np.allclose(given, encoding(QUERY, KEY))


def test_every_layer_adapts_by_itself():
    # 4 heads, 8 -> 32 -> 4, and two numbers of KERPLE for each head.
    one = 8 * 32 + 32 + 32 * 4 + 4 + 8
    assert added_parameters(DAPE(), num_heads=4, num_layers=3) == 3 * one
    shared = DAPE(share_layers=True)
    assert added_parameters(shared, num_heads=4, num_layers=3) == one


def test_the_default_is_log_kerple():
    assert isinstance(DAPE().encoding, LogKERPLE)


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        (RoPE(), "RoPE does not add a bias"),
        (RandomizedALiBi(max_position=64), "RandomizedALiBi brings a sampler"),
    ],
)
def test_encodings_that_cannot_be_adapted(encoding, message):
    with pytest.raises(ValueError, match=message):
        DAPE(encoding=encoding)
