"""Encodings that take keys at larger positions for later tokens."""

import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from scipy.special import softmax

from keras_lengen.checks.guards import INVALID_POSITION
from keras_lengen.layers import (
    DAPE,
    ALiBi,
    BiasEncoding,
    CoupledPositions,
    LogKERPLE,
    MultiHeadAttention,
    SelectiveRoPE,
    T5Bias,
    XPos,
)

STATES = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
RISING = np.array([0, 1, 1, 7, 9])
FALLING = np.array([0, 1, 7, 6, 9])
COUPLED = {"items": range(5), "end_of_prompt": 5}
FALLS = "must not fall"


def make(encoding):
    layer = MultiHeadAttention(2, 4, encoding=encoding)
    layer.build(STATES.shape, STATES.shape)

    def call(positions, **others):
        return layer(
            *(STATES, STATES),
            positions=positions,
            use_causal_mask=True,
            **others,
        )

    return layer, call


@pytest.mark.parametrize(
    "encoding", [T5Bias(), XPos(), DAPE(encoding=T5Bias())]
)
def test_falling_positions_are_refused(encoding):
    _, call = make(encoding)
    assert np.isfinite(call(RISING)).all()
    message = f"{FALLS} .* with {type(encoding).__name__},"
    for positions in (FALLING, np.stack([RISING, FALLING])):
        with pytest.raises(ValueError, match=message):
            call(positions)


def test_compiled_programs_refuse_them():
    _, call = make(T5Bias())
    own = tf.constant(np.stack([RISING, FALLING]))
    graph = tf.function(call)
    assert np.isfinite(graph(tf.constant(RISING))).all()
    with pytest.raises(tf.errors.InvalidArgumentError, match=FALLS):
        graph(own)
    # No assertion ends a program of XLA.
    marked = [INVALID_POSITION, *RISING[1:]]
    for each, wrong in ((call, FALLING), (make(SelectiveRoPE())[1], marked)):
        positions = tf.constant(np.stack([RISING, wrong]))
        output = tf.function(each, jit_compile=True)(positions)
        assert np.isfinite(output[0]).all()
        assert np.isnan(output[1]).all()


def test_positions_of_padding_are_free():
    _, call = make(T5Bias())
    mask = np.array([[1, 1, 0, 0, 1], [0, 1, 1, 1, 0]], "bool")
    positions = np.array([[1, 2, -5, 90, 3], [50, 4, 4, 6, 0]])
    assert np.isfinite(call(positions, value_mask=mask)).all()
    positions[0, 4] = 1
    with pytest.raises(ValueError, match=FALLS):
        call(positions, value_mask=mask)


def test_positions_may_begin_anew_in_another_document():
    layer, call = make(T5Bias())
    documents = np.array([0, 0, 0, 1, 1])
    positions = np.array([0, 1, 2, 0, 1])
    alone = [
        layer(part, part, use_causal_mask=True)
        for part in (STATES[:, :3], STATES[:, 3:])
    ]
    for options in (
        {"attention_mask": documents[:, None] == documents},
        {"segment_ids": np.stack([documents] * 2)},
    ):
        packed = call(positions, **options)
        np.testing.assert_allclose(packed, np.concatenate(alone, 1), atol=1e-5)
    with pytest.raises(ValueError, match=FALLS):
        call(positions[::-1].copy(), segment_ids=np.stack([documents] * 2))


@pytest.mark.parametrize("masked", [False, True])
def test_new_tokens_must_not_stand_before_those_of_a_cache(masked):
    layer, _ = make(T5Bias())
    # Padding at a position of later tokens.
    rising, mask = RISING, None
    if masked:
        rising, mask = np.array([0, 90, 1, 7, 9]), np.arange(5) != 1
        mask = np.stack([mask, mask])

    def step(start, end, positions):
        part = STATES[:, start:end]
        return layer(
            *(part, part),
            positions=positions[start:end],
            key_positions=positions,
            value_mask=mask,
            cache=layer.make_cache(2, 5),
            cache_update_index=start,
            use_causal_mask=True,
        )

    for start, end in ((2, 3), (3, 5)):
        assert np.isfinite(step(start, end, rising)[0]).all()
    for start, end, positions in (
        (4, 5, [0, 1, 1, 7, 6]),
        (3, 5, [0, 1, 7, 6, 9]),
        (3, 5, [0, 1, 1, 9, 7]),
    ):
        with pytest.raises(ValueError, match=FALLS):
            step(start, end, np.array(positions))


class Distances(BiasEncoding):
    """Without a part that layers share."""

    def attention_bias(self, query, key, after, before, *, causal=False):
        steps = ops.cast(after[:, None] - before, "float32")
        return -(steps if causal else ops.abs(steps))[None, None]


@pytest.mark.parametrize(
    "encoding",
    [
        T5Bias(),
        ALiBi(),
        LogKERPLE(asymmetry=0.5),
        DAPE(encoding=T5Bias()),
        Distances(),
    ],
)
def test_biases_have_two_sides_if_the_sampler_does_not_keep_the_order(encoding):
    encoding.sampler = CoupledPositions(**COUPLED)
    layer, call = make(encoding)
    for dense in (layer.query_dense, layer.key_dense):
        dense.kernel.assign(0 * dense.kernel)
    _, weights = call(FALLING, return_attention_scores=True)
    head = np.zeros((1, 5, 2, 4), "float32")
    bias = np.asarray(encoding(head, positions=FALLING))
    scores = np.where(np.tri(5, dtype=bool), bias, -np.inf)
    expected = np.broadcast_to(softmax(scores, axis=-1), weights.shape)
    np.testing.assert_allclose(weights, expected, atol=1e-6)
