"""Encodings whose keys in a cache are not those of `RoPE`."""

import keras
import numpy as np
import pytest

from keras_lengen.layers import (
    STRING,
    AxialEncoding,
    CoPE,
    ForgettingAttention,
    MultiHeadAttention,
    PoPE,
    ReRoPE,
    RoPE,
    SelectiveRoPE,
    SelfExtend,
)
from tests.keras_lengen.layers.encodings.table import HEADS, TOKENS, WIDTH
from tests.keras_lengen.models.small import (
    assert_chunks_change_nothing,
    assert_generation_is_the_full_pass,
    decoder,
    token_ids,
    with_random_weights,
)

MAKE = {
    "SelfExtend": lambda: SelfExtend(group_size=3, window=2),
    "ReRoPE": lambda: ReRoPE(window=2),
    "STRING": lambda: STRING(original_length=7, shift_fraction=0.4, window=2),
    "PoPE": PoPE,
    "SelectiveRoPE": lambda: SelectiveRoPE(max_wavelength=100, rank=3),
    "CoPE": lambda: CoPE(num_positions=4),
}
NEAR_AND_FAR = ["SelfExtend", "ReRoPE", "STRING"]
X = np.random.default_rng(0).normal(size=(2, TOKENS, 16)).astype("float32")


@pytest.mark.parametrize(
    ("name", "groups", "window"),
    [
        *((name, groups, None) for name in MAKE for groups in (None, 1)),
        *((name, 1, 3) for name in ("PoPE", "SelectiveRoPE")),
    ],
)
def test_a_cache_holds_what_a_key_needs(name, groups, window):
    attention = MultiHeadAttention(
        *(HEADS, WIDTH),
        encoding=MAKE[name](),
        num_key_value_heads=groups,
        sliding_window=window,
    )
    attention.build(X.shape, X.shape)
    generator = np.random.default_rng(1)
    for weight in attention.encoding.weights:
        weight.assign(generator.uniform(-2, 0, weight.shape))
    whole = attention(X, X, use_causal_mask=True)
    cache = attention.make_cache(2, TOKENS)
    slots = window if name == "PoPE" and window else TOKENS
    width = {"CoPE": WIDTH, "SelectiveRoPE": WIDTH + WIDTH // 2}
    width = width.get(name, 2 * WIDTH)
    assert cache[0].shape == (2, slots, groups or HEADS, width)
    for first, last in (0, 3), (3, 4), (4, TOKENS):
        new = X[:, first:last]
        # Near and far only, the positions of cached keys are read again.
        positions = {}
        if name != "CoPE":
            positions["positions"] = np.arange(first, last)
        if name in NEAR_AND_FAR:
            positions["key_positions"] = np.arange(TOKENS)
        output, cache = attention(
            *(new, new),
            **positions,
            cache=cache,
            cache_update_index=first,
            use_causal_mask=True,
        )
        np.testing.assert_allclose(output, whole[:, first:last], atol=1e-5)
    if name not in NEAR_AND_FAR:
        return
    with pytest.raises(ValueError, match="`key_positions`, those of all tok"):
        attention(
            *(new, new),
            cache=cache,
            cache_update_index=4,
            positions=np.arange(4, TOKENS),
            use_causal_mask=True,
        )


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        *((name, {}) for name in MAKE),
        *(
            pytest.param(name, changes, marks=pytest.mark.product)
            for name in NEAR_AND_FAR
            for changes in (
                {"num_key_value_heads": 1},
                {"attention": ForgettingAttention},
            )
        ),
    ],
    ids=str,
)
def test_chunks_and_generation_are_the_full_pass(name, changes):
    model = with_random_weights(decoder(MAKE[name](), **changes))
    ids = token_ids(tokens=9)
    assert_chunks_change_nothing(model, ids)
    assert_generation_is_the_full_pass(model, ids, np.array([9, 4], "int32"))


@pytest.mark.parametrize("name", ["PoPE", *NEAR_AND_FAR])
def test_queries_and_keys_are_twice_as_wide(name):
    encoding = MAKE[name]()
    query = keras.Input((TOKENS, 1, WIDTH))
    for symbol in encoding(query, query):
        assert symbol.shape[1:] == (TOKENS, 1, 2 * WIDTH)
    vectors = X[..., None, :WIDTH]
    flat = encoding(vectors[:, :, 0])
    assert flat.shape == (2, TOKENS, 2 * WIDTH)
    np.testing.assert_array_equal(flat, encoding(vectors)[:, :, 0])
    for axes in ({"row": RoPE()}, {"column": RoPE()}):
        with pytest.raises(ValueError, match=rf"={name} returns .* wider"):
            AxialEncoding(**{"row": encoding, "column": encoding, **axes})
