"""The encodings against the code of the transformers library.

Skipped where it is not installed: the extra `peers` brings it.
"""

import numpy as np
import pytest

from keras_lengen.layers import (
    ALiBi,
    InterpolatedPositions,
    Llama3RoPE,
    LongRoPE,
    NTKRoPE,
    RoPE,
    T5Bias,
    YaRN,
)
from tests.keras_lengen.layers.encodings.turns import (
    POSITIONS,
    assert_same_turns,
    unit_vectors,
)

torch = pytest.importorskip("torch")
modeling_bloom = pytest.importorskip("transformers.models.bloom.modeling_bloom")
modeling_glm = pytest.importorskip("transformers.models.glm.modeling_glm")
modeling_gpt_neox = pytest.importorskip(
    "transformers.models.gpt_neox.modeling_gpt_neox"
)
modeling_mpt = pytest.importorskip("transformers.models.mpt.modeling_mpt")
modeling_t5 = pytest.importorskip("transformers.models.t5.modeling_t5")

LONGEST = int(POSITIONS[-1]) + 1
LAYOUTS = pytest.mark.parametrize("layout", ["halves", "interleaved"])
WIDTHS = pytest.mark.parametrize("width", [32, 64, 128])


def rotated_by_transformers(
    layout,
    query,
    positions=POSITIONS,
    *,
    rope_type="default",
    rope_theta=10000,
    max_length=2048,
    **parameters,
):
    """What a model of transformers makes of queries."""
    code, family = {
        "halves": (modeling_gpt_neox, "GPTNeoX"),
        "interleaved": (modeling_glm, "Glm"),
    }[layout]
    width = query.shape[-1]
    config = getattr(code, f"{family}Config")(
        hidden_size=width,
        num_attention_heads=1,
        head_dim=width,
        max_position_embeddings=max_length,
        rope_parameters={
            "rope_type": rope_type,
            "rope_theta": rope_theta,
            "partial_rotary_factor": 1.0,
            **parameters,
        },
    )
    turn = getattr(code, f"{family}RotaryEmbedding")(config)
    query = torch.from_numpy(query)
    cosines, sines = turn(query, torch.from_numpy(positions)[None])
    query, _ = code.apply_rotary_pos_emb(
        query, query, cosines, sines, unsqueeze_dim=2
    )
    return query.numpy()


@LAYOUTS
@WIDTHS
@pytest.mark.parametrize("rotary_fraction", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("max_wavelength", [10_000, 500_000])
def test_rope(layout, width, rotary_fraction, max_wavelength):
    query = unit_vectors(width)
    encoding = RoPE(
        layout=layout,
        rotary_fraction=rotary_fraction,
        max_wavelength=max_wavelength,
    )
    assert_same_turns(
        encoding(query, positions=POSITIONS),
        rotated_by_transformers(
            layout,
            query,
            rope_theta=max_wavelength,
            partial_rotary_factor=rotary_fraction,
        ),
    )


@LAYOUTS
@pytest.mark.parametrize("scaling_factor", [2.0, 3.0, 8.0])
def test_linear_scaling(layout, scaling_factor):
    positions = np.arange(5000)
    query = unit_vectors(16, positions)
    sampler = InterpolatedPositions(
        train_length=2048, scaling_factor=scaling_factor
    )
    encoding = RoPE(layout=layout, sampler=sampler)
    assert_same_turns(
        encoding(query),
        rotated_by_transformers(
            layout,
            query,
            positions,
            rope_type="linear",
            factor=scaling_factor,
        ),
        positions,
    )


@LAYOUTS
@WIDTHS
@pytest.mark.parametrize("original_length", [512, 4000, LONGEST, 8192])
@pytest.mark.parametrize("scaling_factor", [1.0, 2.0, 4.0])
def test_dynamic_ntk(layout, width, original_length, scaling_factor):
    # They keep the rates of a long sequence for the shorter ones that follow,
    # until one is below the trained length. A first sequence has no past.
    query = unit_vectors(width)
    encoding = NTKRoPE(
        layout=layout,
        scaling_factor=scaling_factor,
        original_length=original_length,
    )
    assert_same_turns(
        encoding(query, positions=POSITIONS, length=LONGEST),
        rotated_by_transformers(
            layout,
            query,
            rope_type="dynamic",
            factor=scaling_factor,
            max_length=original_length,
        ),
    )


@LAYOUTS
@WIDTHS
@pytest.mark.parametrize("scaling_factor", [1.0, 4.0, 40.0])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"beta_fast": 16, "beta_slow": 2},
        {"original_length": 256},
        {"original_length": 16},
        {"max_wavelength": 500_000},
        {"rotary_fraction": 0.5},
        {"truncate": False},
        {"attention_factor": 1.3},
    ],
    ids=str,
)
def test_yarn(layout, width, scaling_factor, changes):
    query = unit_vectors(width)
    arguments = {
        "original_length": 2048,
        "beta_fast": 32,
        "beta_slow": 1,
        "max_wavelength": 10_000,
        "rotary_fraction": 1.0,
        "truncate": True,
        "attention_factor": None,
        **changes,
    }
    encoding = YaRN(layout=layout, scaling_factor=scaling_factor, **arguments)
    rotated = encoding(query, positions=POSITIONS)
    # Their own factor of the attention, which multiplies sines and cosines.
    expected = rotated_by_transformers(
        layout,
        query,
        rope_type="yarn",
        factor=scaling_factor,
        max_length=int(scaling_factor * arguments["original_length"]),
        rope_theta=arguments["max_wavelength"],
        partial_rotary_factor=arguments["rotary_fraction"],
        original_max_position_embeddings=arguments["original_length"],
        beta_fast=arguments["beta_fast"],
        beta_slow=arguments["beta_slow"],
        truncate=arguments["truncate"],
        attention_factor=arguments["attention_factor"],
    )
    assert_same_turns(rotated, expected)


@LAYOUTS
@WIDTHS
@pytest.mark.parametrize("fastest_fraction", [0.25, 0.75])
def test_the_fastest_pairs(layout, width, fastest_fraction):
    query = unit_vectors(width)
    encoding = RoPE(layout=layout, fastest_fraction=fastest_fraction)
    assert_same_turns(
        encoding(query, positions=POSITIONS),
        rotated_by_transformers(
            layout,
            query,
            rope_type="proportional",
            partial_rotary_factor=fastest_fraction,
        ),
    )


@LAYOUTS
@WIDTHS
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"scaling_factor": 32, "original_length": 100},
        {"low_frequency_factor": 2, "high_frequency_factor": 30},
        {"max_wavelength": 10_000},
    ],
    ids=str,
)
def test_llama_3(layout, width, changes):
    query = unit_vectors(width)
    encoding = Llama3RoPE(layout=layout, **changes)
    assert_same_turns(
        encoding(query, positions=POSITIONS),
        rotated_by_transformers(
            layout,
            query,
            rope_type="llama3",
            rope_theta=encoding.max_wavelength,
            factor=float(encoding.scaling_factor),
            low_freq_factor=float(encoding.low_frequency_factor),
            high_freq_factor=float(encoding.high_frequency_factor),
            original_max_position_embeddings=encoding.original_length,
        ),
    )


@LAYOUTS
@WIDTHS
@pytest.mark.parametrize("original_length", [1000, LONGEST, 8192])
@pytest.mark.parametrize("scaling_factor", [1.0, 32.0])
def test_long_rope(layout, width, original_length, scaling_factor):
    query = unit_vectors(width)
    short, long = (list(np.linspace(1, top, width // 2)) for top in (2, 40))
    encoding = LongRoPE(
        layout=layout,
        original_length=original_length,
        scaling_factor=scaling_factor,
        short_factors=short,
        long_factors=long,
    )
    assert_same_turns(
        encoding(query, positions=POSITIONS, length=LONGEST),
        rotated_by_transformers(
            layout,
            query,
            rope_type="longrope",
            factor=scaling_factor,
            max_length=int(scaling_factor * original_length),
            short_factor=short,
            long_factor=long,
            original_max_position_embeddings=original_length,
        ),
    )


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("num_buckets", [8, 32, 64])
@pytest.mark.parametrize("max_distance", [128, 200, 1000])
def test_buckets_of_t5(causal, num_buckets, max_distance):
    steps = np.arange(-5000, 5001)
    encoding = T5Bias(num_buckets=num_buckets, max_distance=max_distance)
    query, key = np.zeros((1, 1, 1, 4)), np.zeros((1, len(steps), 1, 4))
    encoding.build(query.shape, key.shape)
    encoding.table.assign(np.arange(num_buckets)[:, None])
    buckets = encoding(
        query, key, positions=np.array([0]), key_positions=steps, causal=causal
    )
    expected = modeling_t5.T5Attention._relative_position_bucket(
        torch.from_numpy(steps),
        bidirectional=not causal,
        num_buckets=num_buckets,
        max_distance=max_distance,
    )
    np.testing.assert_array_equal(np.ravel(buckets), expected.numpy())


@pytest.mark.parametrize("num_heads", range(1, 65))
def test_slopes_of_alibi(num_heads):
    tokens = 300
    mask = torch.ones((1, tokens), dtype=torch.int64)
    bloom = modeling_bloom.build_alibi_tensor(mask, num_heads, torch.float32)
    # Bloom leaves out what is the same for all keys of a query.
    bloom = bloom - bloom[..., -1:]
    mpt = modeling_mpt.build_mpt_alibi_tensor(num_heads, tokens)
    query = np.zeros((1, 1, num_heads, 4))
    bias = ALiBi()(
        query,
        np.zeros((1, tokens, num_heads, 4)),
        positions=np.array([tokens - 1]),
        key_positions=np.arange(tokens),
        causal=True,
    )
    for expected in (bloom, mpt):
        np.testing.assert_allclose(
            bias[0], expected.numpy(), rtol=1e-6, atol=2e-5
        )
