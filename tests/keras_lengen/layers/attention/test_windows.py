"""Caches that hold only the keys in a sliding window."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import MultiHeadAttention, RoPE

BATCH, TOKENS, WIDTH = 2, 13, 16
STATES = np.random.default_rng(5).normal(size=(BATCH, TOKENS, WIDTH))
STATES = STATES.astype("float32")


def make_windowed(encoding=None, **arguments):
    arguments = {"sliding_window": 4, "sink_tokens": 2, **arguments}
    layer = MultiHeadAttention(2, 8, encoding=encoding, **arguments)
    layer.build(STATES.shape, STATES.shape)
    return layer


def call_with_cache(layer, x, slots=TOKENS, **arguments):
    call = {
        "use_causal_mask": True,
        "cache": layer.make_cache(BATCH, slots),
        "cache_update_index": 0,
    }
    return layer(x, x, **{**call, **arguments})


def test_a_cache_for_a_short_sequence_has_no_more_entries():
    layer = make_windowed()
    assert layer.make_cache(2, 3)["key"].shape[1] == 3
    with pytest.raises(ValueError, match="new tokens from cache_update_index"):
        call_with_cache(layer, STATES[:, :2], 3, cache_update_index=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"use_causal_mask": False}, "set use_causal_mask"),
        ({"cache_update_index": None}, "pass cache_update_index"),
        ({"attention_mask": np.ones((1, 6), bool)}, "leave attention_mask"),
        ({"return_attention_scores": True}, "leave return_attention_scores"),
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
