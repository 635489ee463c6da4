"""Encodings that take keys at larger positions for later tokens."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import softmax

from keras_lengen.layers import (
    DAPE,
    ALiBi,
    CoupledPositions,
    LogKERPLE,
    MultiHeadAttention,
    RoPE,
    T5Bias,
    XPos,
)
from tests.products import product

STATES = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
RISING = np.array([0, 1, 1, 7, 9])
FALLING = np.array([0, 1, 7, 6, 9])
COUPLED = {"items": range(5), "end_of_prompt": 5}

ONE_SIDED = {
    "T5Bias": T5Bias,
    "XPos": XPos,
    "DAPE": lambda: DAPE(encoding=T5Bias()),
}
every_one_sided = pytest.mark.parametrize("name", ONE_SIDED)


def attend(encoding, **arguments):
    layer = MultiHeadAttention(2, 4, encoding=encoding)
    layer.build(STATES.shape, STATES.shape)

    def call(positions, **others):
        return layer(
            STATES,
            STATES,
            positions=positions,
            use_causal_mask=True,
            **{**arguments, **others},
        )

    return layer, call


@every_one_sided
def test_falling_positions_are_refused(name):
    _, call = attend(ONE_SIDED[name]())
    assert np.isfinite(call(RISING)).all()
    message = f"must not fall .* with {name},"
    with pytest.raises(ValueError, match=message):
        call(FALLING)
    with pytest.raises(ValueError, match=message):
        call(np.stack([RISING, FALLING]))


@pytest.mark.parametrize("name", product(ONE_SIDED, keep=["T5Bias"]))
def test_compiled_programs_refuse_them(name):
    _, call = attend(ONE_SIDED[name]())
    own = tf.constant(np.stack([RISING, FALLING]))
    graph = tf.function(call)
    assert np.isfinite(graph(tf.constant(RISING))).all()
    with pytest.raises(tf.errors.InvalidArgumentError, match="must not fall"):
        graph(own)
    # No assertion ends a program of XLA.
    output = tf.function(call, jit_compile=True)(own)
    assert np.isfinite(output[0]).all()
    assert np.isnan(output[1]).all()


@pytest.mark.parametrize("run", [lambda call: call, tf.function])
def test_positions_of_padding_are_free(run):
    _, call = attend(T5Bias())
    mask = np.array([[1, 1, 0, 0, 1], [0, 1, 1, 1, 0]], "bool")
    positions = np.array([[1, 2, -5, 90, 3], [50, 4, 4, 6, 0]])
    masked = run(lambda positions: call(positions, value_mask=mask))
    assert np.isfinite(masked(tf.constant(positions))).all()
    positions[0, 4] = 1
    with pytest.raises(
        (ValueError, tf.errors.InvalidArgumentError), match="must not fall"
    ):
        masked(tf.constant(positions))


def test_positions_may_begin_anew_behind_an_attention_mask():
    layer, call = attend(T5Bias())
    documents = np.array([0, 0, 0, 1, 1])
    packed = call(
        np.array([0, 1, 2, 0, 1]),
        attention_mask=documents[:, None] == documents,
    )
    alone = [
        layer(part, part, use_causal_mask=True)
        for part in (STATES[:, :3], STATES[:, 3:])
    ]
    np.testing.assert_allclose(packed, np.concatenate(alone, 1), atol=1e-5)


@pytest.mark.parametrize(
    "encoding", [RoPE(), ALiBi(), T5Bias(sampler=CoupledPositions(**COUPLED))]
)
def test_other_encodings_take_falling_positions(encoding):
    assert np.isfinite(attend(encoding)[1](FALLING)).all()


@pytest.mark.parametrize("masked", [False, True])
def test_new_tokens_must_not_stand_before_those_of_a_cache(masked):
    layer, _ = attend(T5Bias())
    mask = np.ones((2, 5), bool)
    arguments = {"use_causal_mask": True}
    if masked:
        mask[0, 1] = False
        arguments["value_mask"] = mask
    full = layer(STATES, STATES, positions=RISING, **arguments)
    cache = layer.make_cache(2, 5)

    def step(cache, start, end, positions):
        part = STATES[:, start:end]
        return layer(
            part,
            part,
            positions=positions[start:end],
            key_positions=positions,
            cache=cache,
            cache_update_index=start,
            **arguments,
        )

    outputs = []
    for start, end in ((0, 2), (2, 3), (3, 5)):
        output, cache = step(cache, start, end, RISING)
        outputs.append(output)
    real = np.asarray(mask)
    np.testing.assert_allclose(
        np.concatenate(outputs, axis=1)[real],
        np.asarray(full)[real],
        atol=1e-5,
    )
    for start, end, positions in (
        (4, 5, [0, 1, 1, 7, 6]),
        (3, 5, [0, 1, 7, 6, 9]),
        (3, 5, [0, 1, 1, 9, 7]),
    ):
        with pytest.raises(ValueError, match="must not fall"):
            step(cache, start, end, np.array(positions))


@pytest.mark.parametrize(
    "make", [T5Bias, ALiBi, lambda **kwargs: LogKERPLE(asymmetry=0.5, **kwargs)]
)
def test_biases_have_two_sides_if_the_sampler_does_not_keep_the_order(make):
    layer, call = attend(
        make(sampler=CoupledPositions(**COUPLED)), return_attention_scores=True
    )
    for dense in (layer.query_dense, layer.key_dense):
        dense.kernel.assign(np.zeros(dense.kernel.shape))
    _, weights = call(FALLING)
    head = np.ones((1, 5, 2, 4), "float32")
    bias = np.asarray(layer.encoding(head, positions=FALLING))
    scores = np.where(np.tri(5, dtype=bool), bias, -np.inf)
    expected = np.repeat(softmax(scores, axis=-1), 2, axis=0)
    np.testing.assert_allclose(weights, expected, atol=1e-6)
