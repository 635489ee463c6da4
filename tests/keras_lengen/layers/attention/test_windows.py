"""Sliding windows, and caches that hold only the keys in them."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import MultiHeadAttention, RoPE
from tests.covering import cover

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


@pytest.mark.parametrize(
    ("padding", "window", "sinks", "causal"),
    cover(list(MASKS), [1, 3, 4], [0, 2], [True, False]),
)
def test_the_window_shows_the_nearest_real_tokens(
    padding, window, sinks, causal
):
    mask = MASKS[padding]
    layer = make_windowed(sliding_window=window, sink_tokens=sinks)
    _, weights = layer(
        *(STATES, STATES),
        query_mask=mask,
        value_mask=mask,
        use_causal_mask=causal,
        return_attention_scores=True,
    )
    seen = np.asarray(weights)[:, 0] > 0
    expected = find_visible(mask, window, sinks, causal)
    np.testing.assert_array_equal(seen[mask], expected[mask])


def call_with_cache(layer, x, slots=TOKENS, **arguments):
    call = {
        "use_causal_mask": True,
        "cache": layer.make_cache(BATCH, slots),
        "cache_update_index": 0,
    }
    return layer(x, x, **{**call, **arguments})


def test_a_cache_for_a_short_sequence_has_no_more_entries():
    layer = make_windowed()
    assert layer.make_cache(2, 3)[0].shape[1] == 3
    with pytest.raises(ValueError, match="new tokens from cache_update_index"):
        call_with_cache(layer, STATES[:, :2], 3, cache_update_index=2)


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
    with pytest.raises(ValueError, match=f"only the keys .* {message}"):
        call_with_cache(make_windowed(), STATES[:, :1], **arguments)


def test_an_index_that_is_a_tensor_needs_positions():
    index, x = {"cache_update_index": tf.constant(3)}, STATES[:, :2]
    with pytest.raises(ValueError, match=r"RoPE needs .* pass `key_positions`"):
        call_with_cache(make_windowed(RoPE()), x, **index)
    layer = make_windowed()
    found, _ = call_with_cache(layer, x, **index)
    expected, _ = call_with_cache(layer, x, cache_update_index=3)
    np.testing.assert_allclose(found, expected)
