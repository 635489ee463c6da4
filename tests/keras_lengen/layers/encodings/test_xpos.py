import numpy as np
import pytest

from keras_lengen.layers import MultiHeadAttention, RoPE, XPos
from keras_lengen.models import TransformerEncoder
from tests.keras_lengen.layers.encodings.table import random_inputs

QUERY, KEY = random_inputs("rotation")


def test_published_decays():
    ones = np.ones((1, 1, 1, 8), "float32")
    positions = np.array([10])
    query, key = XPos()(ones, ones, positions=positions)
    turned = RoPE()(ones, positions=positions)
    decay = [0.975829, 0.985126, 0.991408, 0.996165]
    decay = np.repeat(np.array(decay), 2)
    np.testing.assert_allclose(query, turned * decay, rtol=2e-6)
    np.testing.assert_allclose(key, turned / decay, rtol=2e-6)


@pytest.mark.parametrize("scale_base", [64, 512])
@pytest.mark.parametrize("start", [0, 2000])
def test_products_fade_with_the_distance(scale_base, start):
    positions = start + np.array([0, 3, 10, 40, 200, 800])
    query, key = XPos(scale_base=scale_base)(QUERY, KEY, positions=positions)
    products = np.einsum("bthd,bshd->bhts", query, key)
    pair = np.arange(4)
    zeta = (2 * pair + 0.4 * 8) / (1.4 * 8)
    rates = 10000.0 ** (-pair / 4)
    for i in range(6):
        for j in range(i + 1):
            distance = float(positions[i] - positions[j])
            q = QUERY[..., 0::2] + 1j * QUERY[..., 1::2]
            k = KEY[..., 0::2] + 1j * KEY[..., 1::2]
            turn = np.exp(1j * distance * rates) * zeta ** (
                distance / scale_base
            )
            expected = np.sum(q[:, i] * k[:, j].conj() * turn, -1).real
            np.testing.assert_allclose(
                products[:, :, i, j], expected, atol=5e-3
            )


def test_attention_must_be_causal():
    x = np.ones((1, 4, 16), "float32")
    attention = MultiHeadAttention(2, 8, encoding=XPos())
    with pytest.raises(ValueError, match="XPos is for causal attention"):
        attention(x, x)
    masked = attention(x, x, attention_mask=np.tri(4, dtype=bool))
    np.testing.assert_allclose(attention(x, x, use_causal_mask=True), masked)


def test_an_encoder_refuses_it():
    with pytest.raises(ValueError, match=r"XPos .* causal"):
        TransformerEncoder(
            vocabulary_size=3,
            output_size=2,
            num_layers=1,
            num_heads=2,
            model_dim=8,
            encoding=XPos(),
        )


def test_a_wrong_scale_raises():
    with pytest.raises(ValueError, match=r"scale_base .* got 0"):
        XPos(scale_base=0)
