import numpy as np
import pytest

from keras_lengen.layers import (
    DAPE,
    ALiBi,
    ClippedBias,
    HardALiBi,
    RandomizedALiBi,
    RoPE,
)

HEADS = 3
QUERY, KEY = (
    np.random.default_rng(0).normal(size=(2, 2, 5, HEADS, 4)).astype("float32")
)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "inner",
    [
        ALiBi(),
        HardALiBi(windowed_heads=2),
        ClippedBias(max_distance=2, slope=None),
    ],
    ids=lambda inner: type(inner).__name__,
)
def test_the_formula(inner, causal):
    encoding = DAPE(encoding=inner, hidden_dim=7)
    bias = np.asarray(encoding(QUERY, KEY, causal=causal))
    plain = np.asarray(inner(QUERY, KEY, causal=causal))
    hidden_kernel, hidden_bias, output_kernel, output_bias = (
        np.asarray(weight).reshape(
            weight.shape[:2] if "kernel" in weight.name else -1
        )
        for weight in encoding.weights[:4]
    )
    for b, t, s in np.ndindex(2, 5, 5):
        scores = [QUERY[b, t, h] @ KEY[b, s, h] / 2 for h in range(HEADS)]
        own = plain[0, :, t, s]
        # -1e9 hides a key from its own head and is nothing to the others.
        shown = np.where(own < -5e8, 0, own)
        hidden = np.concatenate([scores, shown]) @ hidden_kernel + hidden_bias
        hidden = np.where(hidden > 0, hidden, 0.01 * hidden)
        expected = own + hidden @ output_kernel + output_bias
        np.testing.assert_allclose(
            bias[b, :, t, s], expected, rtol=1e-6, atol=1e-5
        )


def test_encodings_that_cannot_be_adapted():
    with pytest.raises(ValueError, match="RoPE does not add a bias"):
        DAPE(encoding=RoPE())
    with pytest.raises(ValueError, match="RandomizedALiBi brings a sampler"):
        DAPE(encoding=RandomizedALiBi(max_position=64))
