"""Options of attention scores: sinks, soft cap, normalization, length."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import (
    ALiBi,
    ForgettingAttention,
    GeometricAttention,
    HardALiBi,
    MultiHeadAttention,
    PaTHAttention,
    RelativeEncoding,
    RoPE,
    StickBreakingAttention,
)
from tests.keras_lengen.layers.attention.test_chunks import (
    assert_chunks_change_nothing,
)
from tests.keras_lengen.models.small import (
    assert_generation_is_the_full_pass,
    decoder,
    with_random_weights,
)

RANDOM = np.random.default_rng(7)
HEADS, WIDTH, TOKENS = 3, 4, 7
STATES = RANDOM.normal(size=(2, TOKENS, 12)).astype("float32")
OPTIONS = {
    "sinks": {"use_sinks": True},
    "cap": {"logit_soft_cap": 0.7},
    "norm": {"use_query_key_norm": True, "norm_epsilon": 0.3},
    "length": {"train_length": 3},
}
OPTIONS["all"] = functools.reduce(dict.__or__, OPTIONS.values())


def make(kind=MultiHeadAttention, **arguments):
    layer = kind(HEADS, WIDTH, **arguments)
    layer.build(STATES.shape, STATES.shape)
    generator = np.random.default_rng(1)
    layer.set_weights(
        [generator.normal(size=weight.shape) for weight in layer.weights]
    )
    return layer


def reference(layer, states, mask, bias=0.0):
    """The outputs from the formulas, and the attention weights, float64."""

    def dense(part, features):
        kernel, *bias = map(np.float64, part.get_weights())
        return features @ kernel + (bias[0] if bias else 0)

    def norm(features, name):
        if not layer.use_query_key_norm:
            return features
        square = (features**2).mean(-1, keepdims=True)
        scale = np.float64(getattr(layer, f"{name}_scale").numpy())
        return features / np.sqrt(square + layer.norm_epsilon) * scale

    query, key, value = (
        dense(part, np.float64(states)).reshape(2, TOKENS, -1, WIDTH)
        for part in (layer.query_dense, layer.key_dense, layer.value_dense)
    )
    groups = HEADS // key.shape[2]
    key, value = (np.repeat(each, groups, axis=2) for each in (key, value))
    query, key = norm(query, "query"), norm(key, "key")
    scores = np.einsum("bihd,bjhd->bhij", query, key) / WIDTH**0.5
    if layer.logit_soft_cap:
        scores = layer.logit_soft_cap * np.tanh(scores / layer.logit_soft_cap)
    mask = np.broadcast_to(mask, scores.shape)
    if layer.train_length:
        count = np.maximum(mask.sum(-1, keepdims=True), 1)
        length = np.log(layer.train_length)
        scores = scores * np.maximum(np.log(count) / length, 1)
    scores = scores + bias
    powers = np.where(mask, np.exp(scores), 0)
    total = powers.sum(-1, keepdims=True)
    if layer.use_sinks:
        total = total + np.exp(np.float64(layer.sinks.numpy()))
    weights = powers / np.maximum(total, 1e-300)
    output = np.einsum("bhij,bjhd->bihd", weights, value)
    output = dense(layer.output_dense, output.reshape(2, TOKENS, -1))
    return output, weights


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("padding", [None, "behind", "before"])
@pytest.mark.parametrize("groups", [None, 1])
@pytest.mark.parametrize("option", OPTIONS)
def test_options_are_their_formulas(option, groups, padding, causal):
    layer = make(
        num_key_value_heads=groups, encoding=ALiBi(), **OPTIONS[option]
    )
    mask = np.ones((2, TOKENS), bool)
    if padding:
        mask[1, -2:] = False
        mask = mask if padding == "behind" else mask[:, ::-1]
    visible = np.broadcast_to(mask[:, None, None], (2, 1, TOKENS, TOKENS))
    if causal:
        visible = visible & np.tri(TOKENS, dtype=bool)
    bias = layer.encoding.attention_bias(
        *[tf.ones((1, TOKENS, HEADS, WIDTH))] * 2,
        *[np.arange(TOKENS)] * 2,
        causal=causal,
    )
    expected, expected_weights = reference(
        layer, STATES, visible, np.float64(bias)
    )
    output, weights = layer(
        STATES,
        STATES,
        value_mask=mask,
        positions=np.arange(TOKENS),
        use_causal_mask=causal,
        return_attention_scores=True,
    )
    sees = visible.any(axis=-1)[:, 0]
    np.testing.assert_allclose(
        np.asarray(output)[sees], expected[sees], rtol=1e-4, atol=1e-4
    )
    weights, expected_weights = (
        np.moveaxis(each, 1, 2)[sees] for each in (weights, expected_weights)
    )
    np.testing.assert_allclose(weights, expected_weights, atol=1e-5)


@pytest.mark.parametrize("option", OPTIONS)
def test_gradients_are_those_of_the_formulas(option):
    """Along a random direction of all weights, by central differences."""
    layer = make(**OPTIONS[option])
    visible = np.tri(TOKENS, dtype=bool)
    factors = RANDOM.normal(size=STATES.shape)
    with tf.GradientTape() as tape:
        output = layer(STATES, STATES, use_causal_mask=True)
        loss = tf.reduce_sum(output * factors.astype("float32"))
    gradients = tape.gradient(loss, layer.trainable_variables)
    start = layer.get_weights()
    direction = [RANDOM.normal(size=weight.shape) for weight in start]
    step, losses = 1e-3, []
    for sign in (1, -1):
        layer.set_weights(
            [w + sign * step * d for w, d in zip(start, direction, strict=True)]
        )
        output, _ = reference(layer, STATES, visible)
        losses.append((output * factors).sum())
    expected = (losses[0] - losses[1]) / (2 * step)
    found = sum(
        (np.asarray(g) * d).sum()
        for g, d in zip(gradients, direction, strict=True)
    )
    np.testing.assert_allclose(found, expected, rtol=5e-3)


@pytest.mark.product
@pytest.mark.parametrize("mode", ["eager", "xla"])
@pytest.mark.parametrize("encoding", [RoPE, RelativeEncoding, HardALiBi])
@pytest.mark.parametrize("option", OPTIONS)
def test_chunks_change_nothing(option, encoding, mode):
    layer = MultiHeadAttention(3, 4, encoding=encoding(), **OPTIONS[option])
    layer.build(STATES.shape, STATES.shape)
    assert_chunks_change_nothing(
        layer, STATES, chunk_size=3, mode=mode, use_causal_mask=True
    )


@pytest.mark.parametrize("option", OPTIONS)
def test_generation_is_the_full_pass(option):
    options = dict(OPTIONS[option])
    options.pop("norm_epsilon", None)
    model = with_random_weights(decoder(RoPE(), **options))
    ids = np.random.default_rng(0).integers(0, 3, (2, 5))
    assert_generation_is_the_full_pass(model, ids, np.array([3, 5]))


@pytest.mark.parametrize(
    ("option", "value"), [("use_sinks", True), ("logit_soft_cap", 50)]
)
def test_published_numbers(option, value):
    """Scores 1, 0, -1 beside a sink of .5; scores 10, 50, 200 capped at 50."""
    layer = MultiHeadAttention(
        1, 1, use_bias=False, **{option: value}, scale_scores=False
    )
    scores = [1, 0, -1] if option == "use_sinks" else [10, 50, 200]
    states = np.array(scores, "float32").reshape(1, 3, 1)
    layer.build((1, 1, 1), states.shape)
    layer.set_weights([np.ones_like(w) for w in layer.get_weights()])
    if option == "use_sinks":
        layer.sinks.assign([[[0.5]]])
    _, weights = layer(np.ones((1, 1, 1)), states, return_attention_scores=True)
    if option == "use_sinks":
        expected = [0.473991, 0.174371, 0.064148]
    else:
        powers = np.exp(np.array([9.868766, 38.079708, 49.966465]))
        expected = powers / powers.sum()
    np.testing.assert_allclose(weights[0, 0, 0], expected, atol=1e-6)


def test_normalized_features():
    layer = MultiHeadAttention(2, 4, use_query_key_norm=True)
    layer.build((None, None, 8), (None, None, 8))
    features = np.array([3, -4, 0, 0], "float32") * np.ones((1, 1, 2, 1))
    for normalized in layer._normalize(features, 100 * features):
        np.testing.assert_allclose(
            normalized, [[[[1.2, -1.6, 0, 0]] * 2]], atol=1e-5
        )
    assert layer._normalize(features, None)[1] is None


def test_sinks_begin_small_and_differ():
    keras.utils.set_random_seed(0)
    layer = MultiHeadAttention(400, 1, use_sinks=True)
    layer.build((None, None, 4), (None, None, 4))
    np.testing.assert_allclose(np.std(layer.sinks), 0.02, rtol=0.2)


def test_a_query_without_keys_gives_its_weight_to_the_sink():
    layer = make(use_sinks=True)
    _, weights = layer(
        STATES,
        STATES,
        attention_mask=np.zeros((1, TOKENS), bool),
        return_attention_scores=True,
    )
    np.testing.assert_array_equal(weights, np.zeros_like(weights))


def test_length_counts_in_evaluation_only():
    plain, scaled = make(), make(train_length=3)
    arguments = {"use_causal_mask": True}
    np.testing.assert_array_equal(
        scaled(STATES, STATES, training=True, **arguments),
        plain(STATES, STATES, training=True, **arguments),
    )
    short, longer = (
        layer(STATES, STATES, **arguments) for layer in (plain, scaled)
    )
    # The first three queries see at most three keys.
    np.testing.assert_allclose(longer[:, :3], short[:, :3], atol=1e-5)
    assert not np.allclose(longer[:, 3:], short[:, 3:], atol=1e-3)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision(policy):
    exact = make(encoding=RoPE(), **OPTIONS["all"])
    layer = MultiHeadAttention(
        HEADS, WIDTH, encoding=RoPE(), dtype=policy, **OPTIONS["all"]
    )
    layer.build(STATES.shape, STATES.shape)
    layer.set_weights([w / 2 for w in exact.get_weights()])
    exact.set_weights([w / 2 for w in exact.get_weights()])
    output = layer(STATES, STATES)
    assert keras.backend.standardize_dtype(output.dtype) == policy[6:]
    np.testing.assert_allclose(
        tf.cast(output, "float32"), exact(STATES, STATES), atol=0.05
    )


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (ForgettingAttention, ["sinks", "cap", "norm", "length"]),
        (PaTHAttention, ["sinks", "cap", "norm", "length"]),
        (StickBreakingAttention, ["cap", "norm", "length"]),
        (GeometricAttention, ["norm"]),
    ],
)
def test_other_rules_of_attention(kind, options):
    arguments = {} if kind is GeometricAttention else {"use_causal_mask": True}
    plain = make(kind)(STATES, STATES, **arguments)
    for name, option in OPTIONS.items():
        if name == "all":
            continue
        if name in options:
            layer = make(kind, **option)
            changed = layer(STATES, STATES, **arguments)
            assert not np.allclose(changed, plain, atol=1e-3)
            assert_chunks_change_nothing(
                layer, STATES, chunk_size=3, tolerance=5e-5, **arguments
            )
            continue
        (refused,) = option
        with pytest.raises(ValueError, match=f"has no use for {refused}="):
            make(kind, **option)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"train_length": 1}, "train_length .* got 1"),
        ({"logit_soft_cap": 0}, "logit_soft_cap .* got 0"),
        ({"norm_epsilon": 0.0}, "norm_epsilon .* got 0"),
        (
            {"train_length": 3, "score_factor": "log_length"},
            "both scale scores .* leave one of them out",
        ),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(2, 4, **arguments)
