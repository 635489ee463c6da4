import keras
import numpy as np
import pytest

from keras_lengen.conformance.requirements import restart
from keras_lengen.layers import (
    ALiBi,
    GridPositions,
    MultiHeadAttention,
    NoPE,
    PowerKERPLE,
    RandomizedPositions,
    RelativeEncoding,
    RoPE,
    SinusoidalEncoding,
    T5Bias,
    TransformerBlock,
)
from tests.keras_lengen.layers.encodings.table import random_inputs

QUERY, KEY = random_inputs("rotation")
NOTHING = NoPE()


@pytest.mark.parametrize("cls", [RoPE, ALiBi, RelativeEncoding])
def test_a_pair_is_encoded_by_one_draw(cls):
    encoding = cls(sampler=RandomizedPositions(max_position=999))
    restart(encoding.sampler)
    positions = encoding.sampler(QUERY)
    restart(encoding.sampler)
    np.testing.assert_array_equal(
        encoding(QUERY, KEY),
        encoding(QUERY, KEY, positions=positions, key_positions=positions),
    )


@pytest.mark.parametrize("cls", [RoPE, ALiBi, RelativeEncoding])
def test_queries_and_keys_of_other_numbers_need_positions(cls):
    encoding, query = cls(), QUERY[:, -2:]
    positions = np.arange(6)
    result = encoding(
        query, KEY, positions=positions[-2:], key_positions=positions
    )
    full = encoding(QUERY, KEY, positions=positions)
    if encoding.stage == "bias":
        np.testing.assert_allclose(result, full[:, :, -2:], atol=1e-6)
    else:
        np.testing.assert_allclose(result[0], full[0][:, -2:])
        np.testing.assert_allclose(result[1], full[1])
    with pytest.raises(ValueError, match=r"2 queries and 6 keys .*pass `pos"):
        encoding(query, KEY)
    with pytest.raises(ValueError, match=r"key must have shape \(B, S, H, D\)"):
        encoding(keras.Input(QUERY.shape[1:]), keras.Input(KEY.shape[2:]))


@pytest.mark.parametrize(
    ("encoding", "heads", "width"),
    [
        (T5Bias(), 4, 8),
        (PowerKERPLE(), 1, 8),
        (RelativeEncoding(), 2, 4),
        (RoPE(rotary_fraction=0.25), 2, 2),
    ],
)
def test_one_encoding_is_for_one_kind_of_attention(encoding, heads, width):
    MultiHeadAttention(2, 8, encoding=encoding).build((1, 5, 16), (1, 5, 16))
    other = MultiHeadAttention(heads, width, encoding=encoding)
    with pytest.raises(ValueError, match=r"built for; .*: make another"):
        other.build((1, 5, 16), (1, 5, 16))
    with pytest.raises(ValueError, match=r"built for; .*: make another"):
        encoding(np.ones((1, 5, heads, width), "float32"))
    # None is for all kinds.
    for size in ((2, 8), (heads, width)):
        layer = MultiHeadAttention(*size, encoding=NOTHING)
        layer.build((1, 5, 16), (1, 5, 16))


@pytest.mark.parametrize("cls", [NoPE, RoPE, ALiBi, SinusoidalEncoding])
def test_rows_and_columns_are_for_axial_encodings(cls):
    with pytest.raises(ValueError, match=r"sampler=GridPositions .*Axial"):
        cls(sampler=GridPositions(width=3))


@pytest.mark.parametrize("encoding", [ALiBi, RelativeEncoding])
def test_sampled_distances_are_for_self_attention(encoding):
    with pytest.raises(ValueError, match=r"cross_encoding=.*rank of a token"):
        TransformerBlock(
            2,
            cross_attention=True,
            cross_encoding=encoding(distances="sampled"),
        )
