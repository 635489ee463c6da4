"""The rotary encodings against KerasHub's.

Skipped where it is not installed: the extra `peers` brings it.
"""

import numpy as np
import pytest

from keras_lengen.layers import InterpolatedPositions, RoPE, YaRN
from tests.keras_lengen.layers.encodings.turns import (
    POSITIONS,
    assert_same_turns,
    unit_vectors,
)

keras_hub = pytest.importorskip("keras_hub")

WIDTHS = pytest.mark.parametrize("width", [32, 64, 128])


@WIDTHS
@pytest.mark.parametrize("max_wavelength", [10_000, 500_000])
def test_rope(width, max_wavelength):
    vectors = unit_vectors(width)
    encoding = RoPE(layout="halves", max_wavelength=max_wavelength)
    peer = keras_hub.layers.RotaryEmbedding(max_wavelength=max_wavelength)
    assert_same_turns(
        encoding(vectors, positions=POSITIONS),
        peer(vectors, positions=POSITIONS),
    )


@pytest.mark.parametrize("start_index", [0, 7, 3000])
def test_rope_from_a_start(start_index):
    vectors = unit_vectors(32)
    np.testing.assert_allclose(
        RoPE(layout="halves")(vectors, start_index=start_index),
        keras_hub.layers.RotaryEmbedding()(vectors, start_index=start_index),
        atol=5e-4,
    )


@pytest.mark.parametrize("scaling_factor", [2.0, 3.0, 8.0])
def test_linear_scaling(scaling_factor):
    positions = np.arange(5000)
    vectors = unit_vectors(16, positions)
    sampler = InterpolatedPositions(
        train_length=2048, scaling_factor=scaling_factor
    )
    encoding = RoPE(layout="halves", sampler=sampler)
    peer = keras_hub.layers.RotaryEmbedding(scaling_factor=scaling_factor)
    assert_same_turns(encoding(vectors), peer(vectors), positions)


@WIDTHS
@pytest.mark.parametrize("scaling_factor", [1.0, 4.0, 40.0])
@pytest.mark.parametrize(
    "changes",
    [{}, {"beta_fast": 16, "beta_slow": 2}, {"max_wavelength": 500_000}],
    ids=str,
)
def test_yarn(width, scaling_factor, changes):
    vectors = unit_vectors(width)
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
    assert_same_turns(
        encoding(vectors, positions=POSITIONS),
        peer(vectors, positions=POSITIONS),
    )
