"""Options of scores: published numbers, limits, starts and errors."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_lengen.layers import (
    ALiBi,
    ForgettingAttention,
    GeometricAttention,
    LengthFactor,
    MultiHeadAttention,
    PaTHAttention,
    PoPE,
    RoPE,
    StickBreakingAttention,
)
from keras_lengen.layers.attention.visibility import Reach, find_visible
from tests.keras_lengen.layers.attention.subjects import (
    FEATURES,
    STATES,
    TOKENS,
)
from tests.keras_lengen.models.small import encoder
from tests.refusals import refuses


def build(kind=MultiHeadAttention, **arguments):
    layer = kind(2, 4, **arguments)
    layer.build(STATES.shape, STATES.shape)
    return layer


def attend(layer, query=STATES, value=STATES, **options):
    """Outputs and weights, as arrays."""
    outputs = layer(query, value, return_attention_scores=True, **options)
    return list(map(np.asarray, outputs))


def test_norms_of_half_precision_do_not_overflow():
    layer = build(use_query_key_norm=True, dtype="mixed_float16")
    features = np.array([[[[3e4, -4e4, 0, 0]]]], "float16")
    (norm, *_) = layer.make_entries()
    found = ops.cast(norm.enter(features, None, None)[0], "float32")
    np.testing.assert_allclose(found, [[[[1.2, -1.6, 0, 0]]]], atol=1e-3)


def test_weights_of_options_start_as_published():
    logs = np.log(np.arange(1, 1025))
    np.testing.assert_allclose(
        build(score_factor="log_length").factor, 1 / logs.mean(), rtol=1e-5
    )
    adaptive = build(score_factor="adaptive").factor
    np.testing.assert_array_equal(adaptive, np.zeros((2, FEATURES, 2)))
    many = MultiHeadAttention(400, 1, use_sinks=True)
    many.build(STATES.shape, STATES.shape)
    np.testing.assert_allclose(np.std(many.sinks), 0.02, rtol=0.2)
    unscaled = build(scale_scores=False, kernel_initializer="ones")
    np.testing.assert_allclose(unscaled.query_dense.kernel, 4**-0.5)
    np.testing.assert_array_equal(unscaled.key_dense.kernel, 1)


def test_a_length_factor_is_that_of_inkling():
    class Counted:
        visible = find_visible(Reach(causal=True), np.arange(131_072), 131_072)

    factors = LengthFactor(floor=8192)(Counted, None)[0, 0, :, 0]
    found = np.asarray(factors)[[0, 8191, 16_383, 131_071]]
    np.testing.assert_allclose(found, [1, 1, 1.069315, 1.277259], 1e-6)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 1 / TOKENS),
        ({"use_entmax": True}, 1 / TOKENS),
        ({"encoding": ALiBi()}, 1 / TOKENS),
        ({"use_sinks": True}, 0),
    ],
    ids=["softmax", "entmax", "bias", "sinks"],
)
def test_weights_of_a_query_without_keys(options, expected):
    layer = build(**options)
    mask = np.zeros((1, TOKENS), bool)
    weights = attend(layer, attention_mask=mask)[1]
    np.testing.assert_allclose(
        weights, np.full_like(weights, expected), rtol=1e-6
    )


@pytest.mark.parametrize("use_entmax", [True, False])
def test_inputs_may_be_empty(use_entmax):
    layer = build(use_sinks=True, use_entmax=use_entmax)
    for shape in ((0, 7, FEATURES), (2, 0, FEATURES)):
        states = tf.zeros(shape)
        assert layer(states, states).shape == shape


@pytest.mark.parametrize("chunk_size", [None, 24])
def test_dropout_drops_its_share_of_the_weights(chunk_size):
    tokens, rate = 64, 0.25
    layer = MultiHeadAttention(
        1, tokens, dropout=rate, use_bias=False, chunk_size=chunk_size
    )
    # All weights are equal, and every key has a place of its own in the output.
    unit = np.eye(tokens, dtype="float32")
    layer.build((8, tokens, tokens), (8, tokens, tokens))
    for dense, kernel in (
        (layer.query_dense, 0 * unit),
        (layer.value_dense, unit),
        (layer.output_dense, unit),
    ):
        dense.kernel.assign(kernel)
    inputs = ops.convert_to_tensor(np.tile(unit, (8, 1, 1)))
    for training in (None, False):
        plain = np.asarray(layer(inputs, inputs, training=training))
        np.testing.assert_allclose(plain, np.full_like(plain, 1 / tokens))
    weights = tokens * np.asarray(layer(inputs, inputs, training=True))
    kept = np.where(weights > 0, 1 / (1 - rate), 0)
    np.testing.assert_allclose(weights, kept, rtol=1e-5)
    # Examples and chunks draw apart: both drop a share of rate ** 2.
    for one, other in (
        (weights[:4], weights[4:]),
        (weights[:, :16], weights[:, 16:32]),
        (weights[:, :24], weights[:, 24:48]),
    ):
        together = np.mean((one == 0) & (other == 0))
        assert abs(together - rate**2) < 0.02


def test_projections_of_quantized_kernels():
    layer = build(use_bias=False, encoding=RoPE())
    expected = layer(STATES, STATES)
    for dense in (layer.query_dense, layer.key_dense, layer.value_dense):
        dense.quantize("int8")
    np.testing.assert_allclose(layer(STATES, STATES), expected, atol=0.05)


@pytest.mark.parametrize(
    "kind", [ForgettingAttention, PaTHAttention, StickBreakingAttention]
)
def test_causal_attentions_need_a_mask(kind):
    with pytest.raises(ValueError, match=f"{kind.__name__} is for causal"):
        kind(2, 4)(STATES, STATES)
    with pytest.raises(ValueError, match=f"attention={kind.__name__} is for"):
        encoder(attention=kind)


@pytest.mark.parametrize("symbolic", [False, True])
def test_adaptive_factors_need_the_index_of_a_query(symbolic):
    layer = build(score_factor="adaptive")
    query, value = STATES[:, :3], STATES
    if symbolic:
        query, value = (keras.Input(each.shape[1:]) for each in (query, value))
    with pytest.raises(ValueError, match="index of a query among the keys"):
        layer(query, value)
    assert layer(query, value, use_causal_mask=True).shape[1] == 3


@refuses(
    (GeometricAttention, {"sliding_window": 4}, "no use for sliding_window="),
    (PaTHAttention, {"encoding": PoPE()}, "no use for encoding=PoPE, whose"),
    (PaTHAttention, {"scale_gates": True}, "set use_forget_gate=True too"),
    (StickBreakingAttention, {"use_sinks": True}, "no use for use_sinks="),
    (GeometricAttention, {"score_factor": "head"}, "no use for score_factor="),
    (GeometricAttention, {"encoding": RoPE()}, "no use for encoding=RoPE"),
    (
        MultiHeadAttention,
        {"train_length": 3, "score_factor": LengthFactor(floor=3)},
        "LengthFactor and train_length both scale .* leave one of them out",
    ),
    (
        MultiHeadAttention,
        {"score_factor": "log"},
        "a LengthFactor or None; got",
    ),
    (
        MultiHeadAttention,
        {"sink_tokens": 3},
        "sink_tokens=3 .* none: set sliding_window",
    ),
)
def test_wrong_arguments_raise(kind, arguments):
    kind(2, 4, **arguments)
