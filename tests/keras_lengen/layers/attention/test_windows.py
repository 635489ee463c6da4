"""Sliding windows, and caches that hold only the keys in them."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import (
    MultiHeadAttention,
    RandomizedPositions,
    RoPE,
)
from keras_lengen.layers.attention.windows import list_slot_ranks
from tests.covering import cover
from tests.keras_lengen.layers.encodings.table import make

BATCH, TOKENS, WIDTH = 2, 13, 16
STATES = np.random.default_rng(5).normal(size=(BATCH, TOKENS, WIDTH))
STATES = STATES.astype("float32")
NUMBERS = np.arange(TOKENS)
MASKS = {
    "none": np.ones((BATCH, TOKENS), bool),
    "behind": np.array([NUMBERS < 13, NUMBERS < 8]),
    "before": np.array([NUMBERS >= 0, NUMBERS >= 5]),
    "between": np.array([NUMBERS % 3 > 0, NUMBERS % 4 != 2]),
}


def make_windowed(encoding=None, **arguments):
    arguments = {"sliding_window": 4, "sink_tokens": 2, **arguments}
    layer = MultiHeadAttention(2, 8, encoding=encoding, **arguments)
    layer.build(STATES.shape, STATES.shape)
    return layer


def find_visible(mask, window, sinks, causal):
    """Which keys each query sees, `(B, T, S)`, token by token."""
    visible = np.zeros((BATCH, TOKENS, TOKENS), bool)
    for example, real in enumerate(mask):
        tokens = np.flatnonzero(real)
        for rank, query in enumerate(tokens):
            for other, key in enumerate(tokens):
                near = abs(rank - other) < window or other < sinks
                visible[example, query, key] = near and (
                    other <= rank or not causal
                )
    return visible


def find_seen(layer, tokens=slice(None), **options):
    """Which weights of the first head are not 0."""
    _, weights = layer(
        STATES[:, tokens], STATES, return_attention_scores=True, **options
    )
    return np.asarray(weights)[:, 0] > 0


@pytest.mark.parametrize(
    ("padding", "window", "sinks", "causal"),
    cover(list(MASKS), [1, 3, 4], [0, 2], [True, False]),
)
def test_the_window_shows_the_nearest_real_tokens(
    padding, window, sinks, causal
):
    mask = MASKS[padding]
    layer = make_windowed(sliding_window=window, sink_tokens=sinks)
    seen = find_seen(
        layer,
        query_mask=mask,
        value_mask=mask,
        self_attention=True,
        use_causal_mask=causal,
    )
    expected = find_visible(mask, window, sinks, causal)
    np.testing.assert_array_equal(seen[mask], expected[mask])


def test_windows_count_neither_positions_nor_later_queries():
    real = MASKS["none"]
    sampler = RandomizedPositions(max_position=1000, seed=1)
    layer = make_windowed(RoPE(sampler=sampler), sink_tokens=0)
    causal = {"use_causal_mask": True, "self_attention": True}
    expected = find_visible(real, 4, 0, causal=True)
    np.testing.assert_array_equal(find_seen(layer, **causal), expected)
    last = find_seen(
        make_windowed(sink_tokens=0), slice(-3, None), use_causal_mask=True
    )
    np.testing.assert_array_equal(last, expected[:, -3:])


@pytest.mark.parametrize("slots", [1, 3, 5, 8])
@pytest.mark.parametrize("sinks", [0, 2])
def test_slots_hold_the_latest_tokens(slots, sinks):
    held = np.full(slots, -1)
    for token in range(20):
        if token < min(sinks, slots):
            held[token] = token
        elif slots > sinks:
            held[sinks + (token - sinks) % (slots - sinks)] = token
        else:
            break
        found = list_slot_ranks(
            keras.ops.convert_to_tensor(token + 1), slots, sinks
        )
        np.testing.assert_array_equal(found, held)


def decode(layer, pieces, mask=None, compiled=False, **arguments):
    """The outputs of a call for each piece of the sequence, with a cache."""
    cache = layer.make_cache(BATCH, TOKENS)

    def step(x, cache, index):
        return layer(
            *(x, x),
            value_mask=mask,
            use_causal_mask=True,
            cache=cache,
            cache_update_index=index,
            **arguments,
        )

    if compiled:
        step = tf.function(step, jit_compile=True)
    outputs, index = [], 0
    for size in pieces:
        x = tf.constant(STATES[:, index : index + size])
        place = tf.constant(index) if compiled else index
        output, cache = step(x, cache, place)
        outputs.append(output)
        index += size
    return np.concatenate(outputs, axis=1), cache


PIECES = {
    "tokens": [1] * TOKENS,
    "pieces": [5, 3, 1, 4],
    "prompt": [9, 1, 1, 1, 1],
    "long": [2, 11],
}


@pytest.mark.parametrize(
    ("encoding", "padding", "pieces"),
    cover(["NoPE", "RoPE", "ALiBi", "CoPE"], list(MASKS), list(PIECES)),
)
def test_a_short_cache_is_the_full_pass(encoding, padding, pieces):
    layer, mask = make_windowed(make(encoding), use_sinks=True), MASKS[padding]
    full = layer(
        STATES, STATES, use_causal_mask=True, query_mask=mask, value_mask=mask
    )
    found, cache = decode(layer, PIECES[pieces], mask)
    np.testing.assert_allclose(found[mask], full.numpy()[mask], atol=1e-5)
    slots = TOKENS if encoding == "CoPE" else 4 + 2
    assert {part.shape[1] for part in cache} == {slots}


@pytest.mark.product
@pytest.mark.parametrize("pieces", ["tokens", "pieces"])
def test_a_short_cache_in_compiled_programs(pieces):
    layer, mask = make_windowed(RoPE(), num_key_value_heads=1), MASKS["between"]
    full = layer(
        STATES,
        STATES,
        use_causal_mask=True,
        positions=NUMBERS,
        value_mask=mask,
    )
    found, _ = decode(
        layer, PIECES[pieces], mask, compiled=True, key_positions=NUMBERS
    )
    np.testing.assert_allclose(found[mask], full.numpy()[mask], atol=1e-5)


def test_a_cache_for_a_short_sequence_has_no_more_entries():
    layer = make_windowed()
    assert layer.make_cache(2, 3)[0].shape[1] == 3
    x = STATES[:, :2]
    with pytest.raises(ValueError, match="new tokens from cache_update_index"):
        layer(
            *(x, x),
            use_causal_mask=True,
            cache=layer.make_cache(BATCH, 3),
            cache_update_index=2,
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"use_causal_mask": False}, "set use_causal_mask"),
        ({"cache_update_index": None}, "pass cache_update_index"),
        (
            {"attention_mask": np.ones((1, 6), bool)},
            "leave attention_mask out",
        ),
        (
            {"return_attention_scores": True},
            "leave return_attention_scores out",
        ),
    ],
)
def test_what_a_short_cache_cannot_do(arguments, message):
    layer = make_windowed()
    x = STATES[:, :1]
    call = {
        "use_causal_mask": True,
        "cache": layer.make_cache(BATCH, TOKENS),
        "cache_update_index": 0,
        **arguments,
    }
    with pytest.raises(ValueError, match=f"only the keys .* {message}"):
        layer(x, x, **call)


def test_an_index_that_is_a_tensor_needs_positions():
    layer = make_windowed(RoPE())
    with pytest.raises(ValueError, match=r"RoPE needs .* pass `key_positions`"):
        decode(layer, [1], compiled=True)
    decode(make_windowed(), [1, 1], compiled=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sliding_window": 0}, "sliding_window .* got 0"),
        ({"sink_tokens": -1}, "sink_tokens .* got -1"),
        ({"sink_tokens": 3}, "sink_tokens=3 .* none: set sliding_window"),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(2, 4, **arguments)
