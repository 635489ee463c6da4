"""The encodings against KerasHub's.

Skipped where it is not installed: the extra `retrofit` brings it.
"""

import numpy as np
import pytest

from keras_lengen.layers import (
    ALiBi,
    InterpolatedPositions,
    Llama3RoPE,
    LongRoPE,
    RoPE,
    YaRN,
)
from tests.covering import cover
from tests.keras_lengen.layers.encodings.turns import (
    POSITIONS,
    assert_same_turns,
    unit_vectors,
)

keras_hub = pytest.importorskip("keras_hub")

# The default run is without it.
pytestmark = pytest.mark.product

WIDTHS = [32, 64, 128]


def assert_agree(encoding, peer, width, tokens=None):
    """Compares them at `POSITIONS`, or at those of so many tokens."""
    positions = POSITIONS if tokens is None else np.arange(tokens)
    vectors = unit_vectors(width, positions)
    given = {"positions": positions} if tokens is None else {}
    found, expected = encoding(vectors, **given), peer(vectors, **given)
    assert_same_turns(found, expected, positions)


@pytest.mark.parametrize(
    ("width", "max_wavelength"), cover(WIDTHS, [10_000, 500_000])
)
def test_rope(width, max_wavelength):
    encoding = RoPE(layout="halves", max_wavelength=max_wavelength)
    peer = keras_hub.layers.RotaryEmbedding(max_wavelength=max_wavelength)
    assert_agree(encoding, peer, width)


@pytest.mark.parametrize("scaling_factor", [2.0, 3.0, 8.0])
def test_linear_scaling(scaling_factor):
    sampler = InterpolatedPositions(
        train_length=2048, scaling_factor=scaling_factor
    )
    encoding = RoPE(layout="halves", sampler=sampler)
    peer = keras_hub.layers.RotaryEmbedding(scaling_factor=scaling_factor)
    assert_agree(encoding, peer, 16, tokens=5000)


@pytest.mark.parametrize(
    ("width", "scaling_factor", "changes"),
    cover(
        WIDTHS,
        [1.0, 4.0, 40.0],
        [{}, {"beta_fast": 16, "beta_slow": 2}, {"max_wavelength": 500_000}],
    ),
)
def test_yarn(width, scaling_factor, changes):
    encoding = YaRN(
        layout="halves",
        original_length=2048,
        scaling_factor=scaling_factor,
        **changes,
    )
    peer = keras_hub.layers.RotaryEmbedding(
        rope_type="yarn",
        original_max_position_embeddings=2048,
        scaling_factor=scaling_factor,
        **changes,
    )
    assert_agree(encoding, peer, width)


@pytest.mark.parametrize(
    ("width", "changes"),
    cover(
        WIDTHS,
        [
            {},
            {"scaling_factor": 32, "original_length": 100},
            {"low_frequency_factor": 2, "high_frequency_factor": 30},
            {"max_wavelength": 10_000},
        ],
    ),
)
def test_llama_3(width, changes):
    from keras_hub.src.models.llama import llama_rotary_embedding

    encoding = Llama3RoPE(layout="halves", **changes)
    peer = llama_rotary_embedding.LlamaRotaryEmbedding(
        max_wavelength=encoding.max_wavelength,
        frequency_adjustment_factor=encoding.scaling_factor,
        low_freq_factor=encoding.low_frequency_factor,
        high_freq_factor=encoding.high_frequency_factor,
        pretraining_sequence_length=encoding.original_length,
    )
    assert_agree(encoding, peer, width)


@pytest.mark.parametrize(
    ("width", "original_length", "scaling_factor"),
    cover(WIDTHS, [59, 60, 1000], [1, 32]),
)
def test_long_rope(width, original_length, scaling_factor):
    from keras_hub.src.models.phi3 import phi3_rotary_embedding

    short, long = (tuple(np.linspace(1, top, width // 2)) for top in (2, 40))
    encoding = LongRoPE(
        layout="halves",
        original_length=original_length,
        scaling_factor=scaling_factor,
        short_factors=short,
        long_factors=long,
    )
    peer = phi3_rotary_embedding.Phi3SuScaledRotaryEmbedding(
        *(list(short), list(long)),
        max_sequence_length=scaling_factor * original_length,
        pretraining_sequence_length=original_length,
    )
    assert_agree(encoding, peer, width, tokens=60)


@pytest.mark.parametrize(
    ("num_heads", "alibi_bias_max"), cover([1, 2, 3, 6, 8, 12], [4, 8, 16])
)
def test_slopes_of_alibi(num_heads, alibi_bias_max):
    peer = keras_hub.layers.AlibiBias(alibi_bias_max=alibi_bias_max)
    expected = peer(np.zeros((1, num_heads, 1, 300), "float32"))
    bias = ALiBi(alibi_bias_max=alibi_bias_max)(
        np.zeros((1, 1, num_heads, 4)),
        np.zeros((1, 300, num_heads, 4)),
        positions=np.array([299]),
        key_positions=np.arange(300),
        causal=True,
    )
    np.testing.assert_allclose(bias, expected, rtol=1e-5)
