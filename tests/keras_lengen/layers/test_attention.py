import keras
import numpy as np
import pytest
from keras import ops

from keras_lengen.layers import (
    ALiBi,
    MultiHeadAttention,
    RandomizedPositions,
    RandomizedRoPE,
    RoPE,
    SinusoidalEncoding,
)
from tests.keras_lengen.layers.arguments import (
    assert_config_round_trip,
    assert_is_attribute,
    constructor_arguments,
    differ,
)
from tests.keras_lengen.layers.encodings.table import (
    BIDIRECTIONAL,
    HEADS,
    MODEL_DIM,
    TOKENS,
    WIDTH,
    at_stage,
    make,
    random_inputs,
)
from tests.keras_lengen.layers.positions.table import reset

INPUTS = ops.convert_to_tensor(random_inputs("embeddings")[0])
OTHERS = ops.convert_to_tensor(random_inputs("embeddings", tokens=9)[0])
OTHERS = ops.flip(OTHERS, axis=1)
RANDOM = np.random.default_rng(2)

every_pair_encoding = pytest.mark.parametrize(
    "variant",
    [
        variant
        for variant in at_stage("rotation", "bias", None)
        if variant in BIDIRECTIONAL
    ],
)


def attention(encoding=None, **kwargs):
    return MultiHeadAttention(HEADS, WIDTH, encoding=encoding, **kwargs)


def like_keras(inputs, **kwargs):
    """Our layer and that of Keras, of equal random weights."""
    ours = attention(**kwargs)
    theirs = keras.layers.MultiHeadAttention(HEADS, WIDTH, **kwargs)
    ours(*inputs), theirs(*inputs)
    weights = [RANDOM.normal(size=w.shape) / 4 for w in theirs.weights]
    theirs.set_weights(weights)
    ours.set_weights(
        [
            weight.reshape(own.shape)
            for weight, own in zip(weights, ours.weights, strict=True)
        ]
    )
    return ours, theirs


@pytest.mark.parametrize(
    "inputs",
    [(INPUTS, INPUTS), (INPUTS, OTHERS), (INPUTS, OTHERS, 2 * OTHERS)],
    ids=["self", "cross", "key"],
)
@pytest.mark.parametrize(
    "arguments", [{}, {"use_bias": False}, {"value_dim": 5}]
)
@pytest.mark.parametrize("mask_shape", [None, (), (2,), (2, HEADS)], ids=str)
def test_without_encoding_it_is_the_layer_of_keras(
    inputs, arguments, mask_shape
):
    ours, theirs = like_keras(inputs, **arguments)
    mask = None
    if mask_shape is not None:
        pairs = (INPUTS.shape[1], inputs[1].shape[1])
        mask = RANDOM.random((*mask_shape, *pairs)) < 0.6
        mask[..., 0] = True
    outputs = [
        layer(*inputs, attention_mask=mask, return_attention_scores=True)
        for layer in (ours, theirs)
    ]
    for own, keras_output in zip(*outputs, strict=True):
        np.testing.assert_allclose(own, keras_output, atol=1e-5)
    alone = ours(*inputs, attention_mask=mask)
    np.testing.assert_array_equal(alone, outputs[0][0])


def test_causal_attention_is_that_of_keras():
    ours, theirs = like_keras((INPUTS, INPUTS))
    np.testing.assert_allclose(
        ours(INPUTS, INPUTS, use_causal_mask=True),
        theirs(INPUTS, INPUTS, use_causal_mask=True),
        atol=1e-5,
    )


@pytest.mark.parametrize("cross", [False, True])
def test_masks_of_keras_are_heeded_and_passed_on(cross):
    def masked(inputs, length):
        mask = np.arange(inputs.shape[1]) < length
        inputs = np.where(mask[:, None], inputs, -99)
        return keras.layers.Masking(-99)(inputs)

    def call(layer):
        query = masked(INPUTS, 4)
        return layer(query, masked(OTHERS, 7) if cross else query)

    ours, theirs = like_keras((INPUTS, OTHERS if cross else INPUTS))
    output = call(ours)
    np.testing.assert_allclose(output[:, :4], call(theirs)[:, :4], atol=1e-5)
    np.testing.assert_array_equal(
        output._keras_mask, [[True] * 4 + [False] * 2] * 2
    )


def test_a_query_without_keys_gives_numbers():
    no_keys = np.zeros((TOKENS, TOKENS), "bool")
    output = attention(ALiBi())(INPUTS, INPUTS, attention_mask=no_keys)
    assert np.isfinite(output).all()


def test_fused_projections_are_the_separate_ones():
    layer = attention(RoPE(), use_bias=False)
    fused = layer(INPUTS, INPUTS)
    separate = layer(INPUTS, INPUTS, ops.copy(INPUTS))
    np.testing.assert_allclose(fused, separate, atol=1e-6)


@every_pair_encoding
def test_scores_take_the_stages_of_the_encoding(variant):
    layer = attention(make(variant))
    positions = ops.convert_to_tensor([0, 3, 4, 9, 30, 31])
    _, weights = layer(
        INPUTS, INPUTS, positions=positions, return_attention_scores=True
    )
    query, key = (
        ops.reshape(dense(INPUTS), (2, TOKENS, HEADS, WIDTH))
        for dense in (layer.query_dense, layer.key_dense)
    )
    bias = layer.encoding.attention_bias(query, key, positions, positions)
    query, key = layer.encoding.rotate(query, key, positions, positions)
    scores = ops.einsum("bthd,bshd->bhts", query, key) / WIDTH**0.5
    scores = scores if bias is None else scores + bias
    np.testing.assert_allclose(weights, ops.softmax(scores), atol=1e-5)


@every_pair_encoding
def test_one_token_at_a_time_is_the_full_pass(variant):
    layer = attention(make(variant))
    positions = np.array([0, 3, 4, 9, 30, 31])
    full = layer(INPUTS, INPUTS, positions=positions, use_causal_mask=True)
    for token in range(TOKENS):
        step = layer(
            INPUTS[:, token : token + 1],
            INPUTS[:, : token + 1],
            positions=positions[token : token + 1],
            key_positions=positions[: token + 1],
            use_causal_mask=True,
        )
        np.testing.assert_allclose(step[:, 0], full[:, token], atol=1e-5)


def test_a_single_token_attends_to_itself():
    layer = attention(RoPE())
    _, weights = layer(
        INPUTS[:, :1], INPUTS[:, :1], return_attention_scores=True
    )
    np.testing.assert_array_equal(weights, np.ones((2, HEADS, 1, 1)))


@every_pair_encoding
@pytest.mark.parametrize(
    "sampler",
    [None, {}, {"resample": "example"}, {"evaluation": "even"}],
    ids=str,
)
def test_padding_by_masks_of_keras_changes_nothing(variant, sampler):
    """Real tokens are numbered in order, wherever the padding stands."""
    encoding = make(variant)
    if sampler is not None:
        encoding.sampler = RandomizedPositions(max_position=50, **sampler)
    layer = attention(encoding)
    places = np.array([[2, 3, 4, 6, 7, 8], [0, 1, 2, 3, 4, 5]])
    mask = np.zeros((2, 9), "bool")
    inputs = np.full((2, 9, MODEL_DIM), 7, "float32")
    for example, tokens in enumerate(places):
        mask[example, tokens] = True
        inputs[example, tokens] = INPUTS[example]
    reset(encoding.sampler)
    inputs = ops.convert_to_tensor(inputs)
    padded = layer(inputs, inputs, query_mask=mask, value_mask=mask)
    reset(encoding.sampler)
    alone = layer(INPUTS, INPUTS)
    for example, tokens in enumerate(places):
        np.testing.assert_allclose(
            np.asarray(padded)[example, tokens], alone[example], atol=1e-5
        )


def count_draws(layer, monkeypatch):
    draws = []
    sample = layer.encoding.sample_positions

    def counted(*args, **kwargs):
        draws.append(sample(*args, **kwargs))
        return draws[-1]

    monkeypatch.setattr(layer.encoding, "sample_positions", counted)
    return draws


@pytest.mark.parametrize(
    "convert", [ops.convert_to_tensor, np.asarray], ids=["tensor", "array"]
)
def test_self_attention_draws_once(convert, monkeypatch):
    layer = attention(RandomizedRoPE())
    draws = count_draws(layer, monkeypatch)
    inputs = convert(INPUTS)
    layer(inputs, inputs)
    assert len(draws) == 1


def test_cross_attention_draws_for_queries_and_for_keys(monkeypatch):
    layer = attention(RandomizedRoPE())
    draws = count_draws(layer, monkeypatch)
    drawn = layer(INPUTS, OTHERS)
    query_positions, key_positions = draws
    assert query_positions.shape == (6,) and key_positions.shape == (9,)
    explicit = layer(
        INPUTS, OTHERS, positions=query_positions, key_positions=key_positions
    )
    np.testing.assert_array_equal(drawn, explicit)
    assert len(draws) == 2


def test_dropout_is_for_training():
    layer = attention(dropout=0.5)
    plain = layer(INPUTS, INPUTS)
    np.testing.assert_array_equal(layer(INPUTS, INPUTS, training=False), plain)
    dropped = layer(INPUTS, INPUTS, training=True)
    assert not np.allclose(dropped, plain, atol=1e-2)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision(policy):
    layer = attention(RoPE(), dtype=policy)
    output, weights = layer(INPUTS, INPUTS, return_attention_scores=True)
    assert keras.backend.standardize_dtype(output.dtype) == policy[6:]
    assert keras.backend.standardize_dtype(weights.dtype) == "float32"
    assert {weight.dtype for weight in layer.weights} == {"float32"}
    exact = attention(RoPE())
    exact.build(INPUTS.shape, INPUTS.shape)
    exact.set_weights(layer.get_weights())
    np.testing.assert_allclose(
        ops.cast(output, "float32"), exact(INPUTS, INPUTS), atol=0.05
    )


def test_symbolic_shapes():
    layer = attention(output_dim=5)
    output, scores = layer(
        keras.Input((None, MODEL_DIM)),
        keras.Input((9, MODEL_DIM)),
        return_attention_scores=True,
    )
    assert output.shape == (None, None, 5)
    assert scores.shape == (None, HEADS, None, 9)
    assert layer(INPUTS, OTHERS).shape == (2, TOKENS, 5)


ARGUMENTS = {
    "num_heads": 4,
    "key_dim": 3,
    "encoding": RandomizedRoPE(max_position=9, seed=1),
    "value_dim": 5,
    "dropout": 0.2,
    "use_bias": False,
    "output_dim": 6,
    "kernel_initializer": "he_normal",
    "bias_initializer": "zeros",
    "seed": 2,
}


@pytest.mark.parametrize(
    "argument", sorted(constructor_arguments(MultiHeadAttention))
)
def test_every_argument_is_an_attribute_and_counts(argument):
    base = {
        "num_heads": HEADS,
        "key_dim": WIDTH,
        "dropout": 0.5,
        "bias_initializer": "ones",
        "seed": 1,
    }
    outputs = []
    for changes in ({}, {argument: ARGUMENTS[argument]}):
        keras.utils.set_random_seed(0)
        layer = MultiHeadAttention(**{**base, **changes})
        outputs.append(layer(INPUTS, INPUTS, training=True))
    assert_is_attribute(layer, argument, ARGUMENTS[argument])
    assert differ(*outputs)


def test_config_rebuilds_it():
    layer = MultiHeadAttention(**ARGUMENTS | {"key_dim": 4})
    assert_config_round_trip(layer)
    layer.build((None, None, 8), (None, None, 8))
    assert_config_round_trip(layer)


def test_initializers_are_used():
    layer = attention(kernel_initializer="ones", bias_initializer="ones")
    layer.build(INPUTS.shape, INPUTS.shape)
    assert all(np.all(weight == 1) for weight in layer.get_weights())
    layer = attention(kernel_initializer=keras.initializers.RandomNormal())
    layer.build(INPUTS.shape, INPUTS.shape)
    assert not np.array_equal(layer.query_dense.kernel, layer.key_dense.kernel)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_heads": 0, "key_dim": 4}, "num_heads .* got 0"),
        ({"num_heads": 2, "key_dim": 1.5}, "key_dim .* got 1.5"),
        (
            {"num_heads": 2, "key_dim": 4, "encoding": SinusoidalEncoding()},
            "SinusoidalEncoding is added to the embeddings",
        ),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(**arguments)
