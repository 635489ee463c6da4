"""Sliding windows."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import softmax

from keras_lengen.layers import (
    ForgettingAttention,
    GeometricAttention,
    MultiHeadAttention,
    NTKRoPE,
    PaTHAttention,
    RandomizedPositions,
    RandomizedRoPE,
    RoPE,
    StickBreakingAttention,
    TransformerBlock,
)
from keras_lengen.layers.attention.windows import list_slot_ranks
from tests.keras_lengen.layers.attention.test_chunks import (
    assert_chunks_change_nothing,
)
from tests.keras_lengen.layers.encodings.table import (
    BATCH,
    BIDIRECTIONAL,
    HEADS,
    MODEL_DIM,
    WIDTH,
    at_stage,
    in_families,
    make,
)
from tests.keras_lengen.models.small import (
    assert_generation_is_the_full_pass,
    decoder,
    with_random_weights,
)
from tests.products import product

TOKENS = 13
RANDOM = np.random.default_rng(5)
INPUTS = RANDOM.normal(size=(BATCH, TOKENS, MODEL_DIM)).astype("float32")
NUMBERS = np.arange(TOKENS)
MASKS = {
    "none": None,
    "behind": np.array([NUMBERS < 13, NUMBERS < 8]),
    "before": np.array([NUMBERS >= 0, NUMBERS >= 5]),
    "between": np.array([NUMBERS % 3 > 0, NUMBERS % 4 != 2]),
}


def windowed(encoding=None, kind=MultiHeadAttention, **arguments):
    arguments = {"sliding_window": 4, "sink_tokens": 2, **arguments}
    layer = kind(HEADS, WIDTH, encoding=encoding, **arguments)
    layer.build(INPUTS.shape, INPUTS.shape)
    return layer


def find_visible(mask, window, sinks, causal):
    """Which keys each query sees, `(B, T, S)`, token by token."""
    mask = np.ones((BATCH, TOKENS), bool) if mask is None else mask
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


def masks_of(mask):
    return {} if mask is None else {"query_mask": mask, "value_mask": mask}


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("padding", MASKS)
@pytest.mark.parametrize(("window", "sinks"), [(1, 0), (3, 0), (4, 2)])
def test_the_window_shows_the_nearest_real_tokens(
    window, sinks, padding, causal
):
    mask = MASKS[padding]
    layer = windowed(sliding_window=window, sink_tokens=sinks, use_bias=False)
    query, key = (
        (INPUTS @ dense.kernel.numpy()).reshape(BATCH, TOKENS, HEADS, WIDTH)
        for dense in (layer.query_dense, layer.key_dense)
    )
    scores = np.einsum("bihd,bjhd->bhij", query, key) / WIDTH**0.5
    visible = find_visible(mask, window, sinks, causal)[:, None]
    expected = softmax(np.where(visible, scores, -1e30), axis=-1)
    _, weights = layer(
        INPUTS,
        INPUTS,
        use_causal_mask=causal,
        return_attention_scores=True,
        **masks_of(mask),
    )
    sees = visible.any(axis=-1) & np.ones((1, HEADS, 1), bool)
    np.testing.assert_allclose(
        np.asarray(weights)[sees], expected[sees], atol=1e-6
    )


@pytest.mark.parametrize(
    "variant", product(at_stage("rotation", "bias", None), keep=in_families)
)
def test_chunks_read_only_what_they_see_with_every_encoding(variant):
    layer = windowed(make(variant), use_sinks=True)
    causal = variant not in BIDIRECTIONAL
    assert_chunks_change_nothing(layer, INPUTS, use_causal_mask=causal)
    assert_chunks_change_nothing(layer, INPUTS, use_causal_mask=True)


@pytest.mark.parametrize(
    "mode", product(["graph", "xla", "unknown_length"], keep=["xla"])
)
@pytest.mark.parametrize("causal", [True, False])
def test_compiled_chunks(mode, causal):
    layer = windowed(RoPE(), num_key_value_heads=1)
    assert_chunks_change_nothing(
        layer, INPUTS, mode=mode, use_causal_mask=causal
    )


@pytest.mark.parametrize("chunk_size", product([1, 2, 3, 4, 12], keep=[2, 12]))
@pytest.mark.parametrize(("window", "sinks"), [(1, 0), (4, 0), (5, 3), (20, 1)])
def test_chunks_of_all_sizes(chunk_size, window, sinks):
    assert_chunks_change_nothing(
        windowed(sliding_window=window, sink_tokens=sinks),
        INPUTS,
        chunk_size=chunk_size,
    )


def real_gradients(layer, mask, chunk_size, causal, weight):
    """The outputs of real tokens, and gradients of their weighted sum."""
    layer.chunk_size = chunk_size
    inputs = tf.constant(INPUTS)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = layer(
            inputs, inputs, use_causal_mask=causal, **masks_of(mask)
        )
        outputs = tf.where(mask[..., None], outputs, 0.0)
        loss = tf.reduce_sum(outputs * weight)
    gradients = tape.gradient(loss, [inputs, *layer.trainable_variables])
    return [outputs, *gradients]


@pytest.mark.parametrize(
    ("padding", "causal", "variant"),
    product(
        itertools.product(
            ("behind", "before", "between"),
            (True, False),
            ("NoPE", "RoPE", "ALiBi", "RelativeEncoding"),
        ),
        keep=lambda padding, causal, variant: (
            variant == "RoPE" or (padding == "between" and causal)
        ),
    ),
)
def test_padded_chunks(padding, causal, variant):
    layer, mask = windowed(make(variant)), MASKS[padding]
    weight = np.random.default_rng(1).normal(size=INPUTS.shape)
    direct, chunked = (
        real_gradients(
            layer, mask, chunk_size, causal, weight.astype("float32")
        )
        for chunk_size in (None, 3)
    )
    for expected, found in zip(direct, chunked, strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-5)


def test_another_mask_makes_chunks_read_all_keys():
    mask = np.random.default_rng(0).random((BATCH, TOKENS, TOKENS)) < 0.7
    mask |= np.eye(TOKENS, dtype=bool)
    assert_chunks_change_nothing(windowed(), INPUTS, attention_mask=mask)
    layer = windowed()
    _, weights = layer(
        INPUTS, INPUTS, attention_mask=mask, return_attention_scores=True
    )
    visible = mask & find_visible(None, 4, 2, causal=False)
    np.testing.assert_array_equal(np.asarray(weights)[:, 0] > 0, visible)


def test_queries_are_the_last_of_the_keys():
    layer = windowed(sink_tokens=0)
    _, weights = layer(
        INPUTS[:, -3:],
        INPUTS,
        use_causal_mask=True,
        return_attention_scores=True,
    )
    expected = find_visible(None, 4, 0, causal=True)[:, -3:]
    np.testing.assert_array_equal(np.asarray(weights)[:, 0] > 0, expected)


def test_time_and_memory_do_not_grow_with_the_square():
    """Scores of a chunk cover its window, not all keys."""
    shapes = []

    class Witness(MultiHeadAttention):
        def _compute_scores(self, queries, keys_and_values):
            scores = super()._compute_scores(queries, keys_and_values)
            shapes.append(tuple(scores.shape))
            return scores

    layer = Witness(2, 4, sliding_window=5, sink_tokens=1, chunk_size=8)
    x = np.ones((1, 64, 8), "float32")
    layer(x, x, use_causal_mask=True)
    assert set(shapes) == {(1, 2, 8, 1 + 4 + 8)}
    auto = MultiHeadAttention(2, 4, sliding_window=512)
    assert auto.find_chunk_size(16384, 16384, sliced=True) == 512
    assert auto.find_chunk_size(16384, 16384) == 128
    assert auto.find_chunk_size(1024, 1024, sliced=True) is None


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
    if mask is not None:
        arguments["value_mask"] = mask

    def step(x, cache, index):
        return layer(
            *(x, x),
            use_causal_mask=True,
            cache=cache,
            cache_update_index=index,
            **arguments,
        )

    if compiled:
        step = tf.function(step, jit_compile=True)
    outputs, index = [], 0
    for size in pieces:
        x = tf.constant(INPUTS[:, index : index + size])
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
    ("variant", "padding", "pieces"),
    product(
        itertools.product(("NoPE", "RoPE", "ALiBi", "CoPE"), MASKS, PIECES),
        keep=lambda variant, padding, pieces: (
            variant == "RoPE" or (padding == "between" and pieces == "pieces")
        ),
    ),
)
def test_a_short_cache_is_the_full_pass(variant, padding, pieces):
    layer, mask = windowed(make(variant), use_sinks=True), MASKS[padding]
    full = layer(INPUTS, INPUTS, use_causal_mask=True, **masks_of(mask))
    found, cache = decode(layer, PIECES[pieces], mask)
    real = np.ones((BATCH, TOKENS), bool) if mask is None else mask
    np.testing.assert_allclose(found[real], np.asarray(full)[real], atol=1e-5)
    slots = TOKENS if variant == "CoPE" else 4 + 2
    assert {part.shape[1] for part in cache} == {slots}


@pytest.mark.parametrize(
    "variant", product(at_stage("rotation", "bias", None), keep=in_families)
)
def test_every_encoding_decodes_with_a_short_cache(variant):
    layer = windowed(make(variant))
    positions = np.sort(RANDOM.choice(50, TOKENS, replace=False))
    full = layer(INPUTS, INPUTS, use_causal_mask=True, positions=positions)
    found, _ = decode(layer, [4, *[1] * 9], key_positions=positions)
    np.testing.assert_allclose(found, full, atol=2e-5)


@pytest.mark.product
@pytest.mark.parametrize("pieces", ["tokens", "pieces"])
@pytest.mark.parametrize("padding", ["none", "between"])
def test_a_short_cache_in_compiled_programs(padding, pieces):
    layer, mask = windowed(RoPE(), num_key_value_heads=1), MASKS[padding]
    full = layer(INPUTS, INPUTS, use_causal_mask=True, **masks_of(mask))
    found, _ = decode(
        layer, PIECES[pieces], mask, compiled=True, key_positions=NUMBERS
    )
    real = np.ones((BATCH, TOKENS), bool) if mask is None else mask
    if mask is None:
        np.testing.assert_allclose(found, full, atol=1e-5)
    else:
        given = layer(
            INPUTS,
            INPUTS,
            use_causal_mask=True,
            positions=NUMBERS,
            **masks_of(mask),
        )
        np.testing.assert_allclose(
            found[real], np.asarray(given)[real], atol=1e-5
        )


def test_a_cache_for_a_short_sequence_has_no_more_entries():
    layer = windowed()
    assert layer.make_cache(2, 3)[0].shape[1] == 3
    cache = layer.make_cache(BATCH, 3)
    x = INPUTS[:, :2]
    with pytest.raises(ValueError, match="new tokens from cache_update_index"):
        layer(x, x, use_causal_mask=True, cache=cache, cache_update_index=2)


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
    layer = windowed()
    x = INPUTS[:, :1]
    call = {
        "use_causal_mask": True,
        "cache": layer.make_cache(BATCH, TOKENS),
        "cache_update_index": 0,
        **arguments,
    }
    with pytest.raises(ValueError, match=f"only the keys .* {message}"):
        layer(x, x, **call)


def test_an_index_that_is_a_tensor_needs_positions():
    layer = windowed(RoPE())
    with pytest.raises(ValueError, match=r"RoPE needs .* pass `key_positions`"):
        decode(layer, [1], compiled=True)
    decode(windowed(), [1, 1], compiled=True)


@pytest.mark.product
@pytest.mark.parametrize("lengths", [None, [3, 9]])
@pytest.mark.parametrize(
    "encoding",
    [
        None,
        RoPE(),
        "ALiBi",
        "CoPE",
        NTKRoPE(scaling_factor=2, original_length=6),
    ],
)
def test_generation_is_the_full_pass(encoding, lengths):
    encoding = make(encoding) if isinstance(encoding, str) else encoding
    model = with_random_weights(
        decoder(encoding, num_layers=2, sliding_window=3, sink_tokens=1)
    )
    ids = np.random.default_rng(0).integers(0, 3, (2, 9))
    lengths = None if lengths is None else np.array(lengths)
    assert_generation_is_the_full_pass(
        model, ids, lengths, compiled=isinstance(encoding, RoPE)
    )


def test_generation_keeps_a_short_cache():
    model = decoder(RoPE(), sliding_window=3, sink_tokens=1)
    ((key, value),) = (block["attention"] for block in model.make_cache(2, 100))
    assert key.shape[1] == value.shape[1] == 4


def test_a_block_decodes_with_a_short_cache():
    block = TransformerBlock(
        num_heads=HEADS,
        encoding=RoPE(),
        use_causal_mask=True,
        sliding_window=3,
        sink_tokens=1,
    )
    full = block(INPUTS)
    cache = block.make_cache(BATCH, TOKENS)
    mask = np.ones((BATCH, TOKENS), bool)
    for index in range(TOKENS):
        output, cache = block(
            INPUTS[:, index : index + 1],
            mask=mask,
            cache=cache,
            cache_update_index=index,
        )
        np.testing.assert_allclose(
            output, full[:, index : index + 1], atol=1e-5
        )


def test_a_window_counts_tokens_and_not_positions():
    sampler = RandomizedPositions(max_position=1000, seed=1)
    layer = windowed(RoPE(sampler=sampler), sink_tokens=0)
    _, weights = layer(
        INPUTS, INPUTS, use_causal_mask=True, return_attention_scores=True
    )
    np.testing.assert_array_equal(
        np.asarray(weights)[:, 0] > 0, find_visible(None, 4, 0, causal=True)
    )
    assert_chunks_change_nothing(
        windowed(RandomizedRoPE(max_position=100, seed=1)), INPUTS
    )


@pytest.mark.parametrize(
    "kind",
    [
        *(GeometricAttention, StickBreakingAttention, ForgettingAttention),
        PaTHAttention,
    ],
)
def test_other_rules_of_attention_refuse_a_window(kind):
    message = f"{kind.__name__} has no use for sliding_window=4"
    with pytest.raises(ValueError, match=message):
        kind(2, 4, sliding_window=4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sliding_window": 0}, "sliding_window .* got 0"),
        ({"sink_tokens": -1}, "sink_tokens .* got -1"),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(2, 4, **arguments)
