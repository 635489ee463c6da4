import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_lengen.checks.arguments import constructor_arguments
from keras_lengen.layers import (
    ALiBi,
    AxialEncoding,
    GridPositions,
    InterpolatedPositions,
    MultiHeadAttention,
    NoPE,
    NTKRoPE,
    RandomizedALiBi,
    RandomizedPositions,
    RandomizedRoPE,
    RelativeEncoding,
    RoPE,
    SinusoidalEncoding,
    T5Bias,
    YaRN,
)
from tests.keras_lengen.layers.arguments import (
    assert_config_round_trip,
    assert_is_attribute,
    differ,
)
from tests.keras_lengen.layers.encodings.table import (
    BIDIRECTIONAL,
    HEADS,
    MODEL_DIM,
    TOKENS,
    WIDTH,
    at_stage,
    in_families,
    make,
    random_inputs,
)
from tests.keras_lengen.layers.positions.table import reset
from tests.products import product

INPUTS = ops.convert_to_tensor(random_inputs("embeddings")[0])
OTHERS = ops.convert_to_tensor(random_inputs("embeddings", tokens=9)[0])
OTHERS = ops.flip(OTHERS, axis=1)
RANDOM = np.random.default_rng(2)
POSITIONS = {
    "shared": np.array([0, 3, 4, 9, 30, 31]),
    "own": np.array([[0, 3, 4, 9, 30, 31], [1, 2, 8, 15, 16, 40]]),
}

a_pair_encoding_of_each_kind = pytest.mark.parametrize(
    "variant",
    product(
        [
            variant
            for variant in at_stage("rotation", "bias", None)
            if variant in BIDIRECTIONAL
        ],
        keep=in_families,
    ),
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
    "arguments",
    product([{}, {"use_bias": False}, {"value_dim": 5}], [{"value_dim": 5}]),
)
@pytest.mark.parametrize(
    "mask_shape",
    product(
        [None, *map(pytest.param, [(), (2,), (2, HEADS)])],
        keep=lambda shape: shape in (None, (2,)),
    ),
    ids=str,
)
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


@pytest.mark.parametrize(
    ("name", "mask"),
    [
        ("attention_mask", np.tri(6, dtype="int32")),
        ("value_mask", np.array([[1] * 6, [1, 1, 1, 1, 0, 0]])),
    ],
)
def test_masks_are_booleans_or_ones_and_zeros(name, mask):
    """Other integers, which may be meant to be added to scores, are errors."""
    layer = attention(ALiBi())

    def call(mask):
        return layer(INPUTS, INPUTS, **{name: mask})

    expected = call(mask == 1)
    for dtype in ("int32", "int64", "uint8"):
        np.testing.assert_array_equal(call(mask.astype(dtype)), expected)
    wrong = (mask.astype("int32") - 1) * 10000
    message = f"{name} must be .* got integers from -10000 to 0"
    with pytest.raises(ValueError, match=message):
        call(wrong)
    with pytest.raises(tf.errors.InvalidArgumentError, match=name):
        tf.function(call)(wrong)
    compiled = tf.function(call, jit_compile=True)
    assert np.isnan(compiled(wrong)).all()
    np.testing.assert_allclose(
        compiled(mask.astype("int32")), expected, atol=1e-5
    )


def test_a_missing_value_is_named():
    layer = attention(None)
    model = keras.Sequential([MultiHeadAttention(2, 4)])
    for call in (layer, model):
        with pytest.raises(ValueError, match="value is missing"):
            call(INPUTS)
    layer(INPUTS, INPUTS)
    with pytest.raises(ValueError, match="value has width 3, but this"):
        layer(INPUTS, INPUTS[..., :3])
    with pytest.raises(ValueError, match="value must have at least one token"):
        layer(INPUTS, INPUTS[:, :0])


def test_a_query_without_keys_gives_numbers():
    no_keys = np.zeros((TOKENS, TOKENS), "bool")
    output = attention(ALiBi())(INPUTS, INPUTS, attention_mask=no_keys)
    assert np.isfinite(output).all()


def test_fused_projections_are_the_separate_ones():
    layer = attention(RoPE(), use_bias=False)
    fused = layer(INPUTS, INPUTS)
    separate = layer(INPUTS, INPUTS, ops.copy(INPUTS))
    np.testing.assert_allclose(fused, separate, atol=1e-6)


@a_pair_encoding_of_each_kind
def test_scores_take_the_stages_of_the_encoding(variant):
    layer = attention(make(variant))
    positions = ops.convert_to_tensor(POSITIONS["shared"])
    _, weights = layer(
        INPUTS, INPUTS, positions=positions, return_attention_scores=True
    )
    query, key = (
        ops.reshape(dense(INPUTS), (2, TOKENS, HEADS, WIDTH))
        for dense in (layer.query_dense, layer.key_dense)
    )
    bias = layer.encoding.attention_bias(query, key, positions, positions)
    features = {"inputs": INPUTS} if layer.encoding.reads_inputs else {}
    query, key = layer.encoding.rotate(
        query, key, positions, positions, **features
    )
    scores = ops.einsum("bthd,bshd->bhts", query, key) / WIDTH**0.5
    scores = scores if bias is None else scores + bias
    np.testing.assert_allclose(weights, ops.softmax(scores), atol=1e-5)


@a_pair_encoding_of_each_kind
def test_one_token_at_a_time_is_the_full_pass(variant):
    layer = attention(make(variant))
    positions = POSITIONS["shared"]
    full = layer(INPUTS, INPUTS, positions=positions, use_causal_mask=True)
    if layer.encoding.reads_inputs:
        # Only a cache has the features of earlier tokens.
        with pytest.raises(ValueError, match="the queries' own tokens"):
            layer(INPUTS[:, 1:], INPUTS, use_causal_mask=True)
        return
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


@a_pair_encoding_of_each_kind
@pytest.mark.parametrize(
    "sampler",
    product(
        [None, {}, {"resample": "example"}, {"evaluation": "even"}],
        keep=[None, {"resample": "example"}],
    ),
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
    once = layer(inputs, inputs, value_mask=mask)
    np.testing.assert_array_equal(once, padded)
    reset(encoding.sampler)
    alone = layer(INPUTS, INPUTS)
    for example, tokens in enumerate(places):
        np.testing.assert_allclose(
            np.asarray(padded)[example, tokens], alone[example], atol=1e-5
        )


def from_cache(layer, chunks, inputs=INPUTS, positions=None, **arguments):
    """Outputs of causal attention to some tokens after the other."""
    cache = layer.make_cache(*inputs.shape[:2])
    outputs, start = [], 0
    for tokens in chunks:
        end = start + tokens
        if positions is not None:
            arguments["positions"] = keras.tree.map_structure(
                lambda axis, tokens=slice(start, end): axis[..., tokens],
                positions,
            )
            arguments["key_positions"] = positions
        chunk = inputs[:, start:end]
        output, cache = layer(
            chunk,
            chunk,
            cache=cache,
            cache_update_index=start,
            use_causal_mask=True,
            **arguments,
        )
        outputs.append(output)
        start = end
    return np.concatenate(outputs, axis=1)


def assert_cache_changes_nothing(layer, chunks, **arguments):
    found = from_cache(layer, chunks, **arguments)
    full = layer(INPUTS, INPUTS, use_causal_mask=True, **arguments)
    np.testing.assert_allclose(found, full, atol=1e-5)


@pytest.mark.parametrize(
    "variant", product(at_stage("rotation", "bias", None), keep=in_families)
)
@pytest.mark.parametrize(
    ("chunks", "positions"), [((1,) * TOKENS, "shared"), ((3, 1, 2), "own")]
)
def test_a_cache_changes_nothing(variant, chunks, positions):
    assert_cache_changes_nothing(
        attention(make(variant)), chunks, positions=POSITIONS[positions]
    )


@pytest.mark.parametrize("encoding", [RoPE, ALiBi, RelativeEncoding, T5Bias])
@pytest.mark.parametrize(
    "sampler", [None, InterpolatedPositions(train_length=4)]
)
def test_a_cache_numbers_tokens_like_the_full_pass(encoding, sampler):
    layer = attention(encoding(sampler=sampler))
    assert_cache_changes_nothing(layer, (2, 1, 1, 2))


@pytest.mark.parametrize("encoding", [RoPE, ALiBi])
@pytest.mark.parametrize("explicit", [False, True])
def test_a_cache_of_rows_and_columns_changes_nothing(encoding, explicit):
    sampler = GridPositions(width=4)
    axial = AxialEncoding(row=encoding(), column=encoding(), sampler=sampler)
    positions = tuple(map(np.asarray, sampler(INPUTS))) if explicit else None
    assert_cache_changes_nothing(
        attention(axial), (2, 1, 3), positions=positions
    )


@pytest.mark.parametrize(
    "encoding",
    [
        NTKRoPE(scaling_factor=4.0, original_length=2),
        YaRN(scaling_factor=None, original_length=2),
    ],
    ids=["NTKRoPE", "YaRN"],
)
@pytest.mark.parametrize("length", [None, 6, 20])
def test_a_cache_knows_the_length_of_the_whole(encoding, length):
    layer = attention(encoding)
    assert_cache_changes_nothing(layer, (2, 1, 3), length=length)
    if length != 20:
        with_length = from_cache(layer, (2, 1, 3), length=length)
        assert differ(with_length, from_cache(layer, (2, 1, 3), length=20))


@pytest.mark.parametrize("encoding", [None, RoPE, ALiBi, RelativeEncoding])
@pytest.mark.parametrize("chunks", [(1,) * TOKENS, (4, 2)], ids=str)
def test_padding_in_a_cache_changes_nothing(encoding, chunks):
    layer = attention(encoding and encoding())
    mask = np.array([[0, 0, 1, 1, 1, 1], [1, 1, 0, 0, 1, 1]], "bool")
    found = from_cache(layer, chunks, value_mask=mask)
    full = layer(
        INPUTS, INPUTS, query_mask=mask, value_mask=mask, use_causal_mask=True
    )
    np.testing.assert_allclose(found[mask], full[mask], atol=1e-5)


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_key_value_heads": 1, "value_dim": 5},
        {"chunk_size": 2},
        {"use_bias": False, "scale_scores": False},
    ],
    ids=str,
)
def test_a_cache_is_for_every_shape_of_attention(arguments):
    layer = attention(RelativeEncoding(), **arguments)
    assert_cache_changes_nothing(
        layer, (1, 4, 1), positions=POSITIONS["shared"]
    )


@pytest.mark.parametrize("jit_compile", [False, True])
def test_the_index_in_the_cache_may_be_a_tensor(jit_compile):
    layer = attention(RelativeEncoding())
    full = layer(INPUTS, INPUTS, use_causal_mask=True)

    @tf.function(jit_compile=jit_compile)
    def step(token, cache, index):
        return layer(
            token,
            token,
            cache=cache,
            cache_update_index=index,
            use_causal_mask=True,
        )

    cache = layer.make_cache(2, TOKENS)
    for index in range(TOKENS):
        token = INPUTS[:, index : index + 1]
        output, cache = step(token, cache, tf.constant(index))
        np.testing.assert_allclose(output[:, 0], full[:, index], atol=1e-5)


@pytest.mark.parametrize("index", [0, 2])
@pytest.mark.parametrize("encoding", [RandomizedRoPE, RandomizedALiBi])
def test_a_cache_needs_positions_of_samplers_that_draw(encoding, index):
    layer = attention(encoding())
    cache = layer.make_cache(2, TOKENS)
    token = INPUTS[:, :1]
    with pytest.raises(ValueError, match="RandomizedPositions draws anew"):
        layer(token, token, cache=cache, cache_update_index=index)


def test_a_bias_needs_the_positions_of_all_keys_in_the_cache():
    def attend(encoding):
        layer = attention(encoding)
        return layer(
            INPUTS,
            INPUTS,
            positions=POSITIONS["shared"],
            cache=layer.make_cache(2, 9),
            cache_update_index=0,
        )

    with pytest.raises(ValueError, match="pass `key_positions`"):
        attend(ALiBi())
    assert attend(RoPE())[0].shape == INPUTS.shape


@pytest.mark.parametrize("encoding", [None, RoPE, ALiBi, RelativeEncoding])
def test_another_sequence_is_cached_once(encoding):
    layer = attention(encoding and encoding())
    masks = {"value_mask": np.arange(9) < np.array([[7], [9]])}
    positions = POSITIONS["own"]
    others = {"key_positions": np.arange(3, 12), **masks}
    full = layer(INPUTS, OTHERS, positions=positions, **others)
    output, filled = layer(
        INPUTS[:, :2],
        OTHERS,
        positions=positions[:, :2],
        cache=layer.make_cache(2, 9),
        cache_update_index=0,
        **others,
    )
    np.testing.assert_allclose(output, full[:, :2], atol=1e-5)
    rest = INPUTS[:, 2:]
    for ignored in (rest, OTHERS, 0 * OTHERS[:, :1]):
        output, cache = layer(
            rest, ignored, positions=positions[:, 2:], cache=filled, **others
        )
        np.testing.assert_allclose(output, full[:, 2:], atol=1e-5)
        assert not differ(cache, filled)


def test_queries_of_a_cached_sequence_need_positions():
    def attend(encoding, others, index):
        layer = attention(encoding)
        cache = layer.make_cache(2, 9)
        layer.build(INPUTS.shape, OTHERS.shape)
        return layer(INPUTS, others, cache=cache, cache_update_index=index)

    for others, index in ((OTHERS, 0), (INPUTS, None)):
        with pytest.raises(ValueError, match="pass their `positions`"):
            attend(RoPE(), others, index)
        assert attend(NoPE(), others, index)[0].shape == INPUTS.shape


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_what_a_call_with_a_cache_returns(policy):
    layer = attention(num_key_value_heads=1, value_dim=5, dtype=policy)
    cache = layer.make_cache(2, 9)
    for inputs, given in (
        (INPUTS, cache),
        (
            keras.Input(INPUTS.shape[1:], 2),
            [keras.KerasTensor(part.shape, part.dtype) for part in cache],
        ),
    ):
        output, weights, new_cache = layer(
            inputs,
            inputs,
            cache=given,
            cache_update_index=3,
            return_attention_scores=True,
        )
        assert output.shape == INPUTS.shape
        assert weights.shape == (2, HEADS, TOKENS, 9)
        assert [part.shape for part in new_cache] == [
            (2, 9, 1, 8),
            (2, 9, 1, 5),
        ]
        dtypes = {keras.backend.standardize_dtype(p.dtype) for p in new_cache}
        assert dtypes == {policy.removeprefix("mixed_")}
        output, _ = layer(inputs, inputs, cache=given, cache_update_index=3)
        assert output.shape == INPUTS.shape


def test_tokens_are_written_to_their_place_in_the_cache():
    layer = attention()
    layer.build(INPUTS.shape, INPUTS.shape)
    old = tuple(RANDOM.normal(size=(2, 2, 9, HEADS, WIDTH)).astype("float32"))
    _, new = layer(INPUTS, INPUTS, cache=old, cache_update_index=2)
    for dense, before, after in zip(
        (layer.key_dense, layer.value_dense), old, new, strict=True
    ):
        expected = before.copy()
        expected[:, 2:8] = np.reshape(dense(INPUTS), (2, 6, HEADS, WIDTH))
        np.testing.assert_allclose(after, expected, atol=1e-6)


@pytest.mark.parametrize("encoding", [None, RoPE, RelativeEncoding])
@pytest.mark.parametrize("key_heads", [1, 2])
def test_heads_of_a_group_share_keys_and_values(encoding, key_heads):
    """They are ordinary heads of which some have equal weights."""
    shape = {"num_heads": 4, "key_dim": 4, "value_dim": 3}
    grouped, full = (
        MultiHeadAttention(**shape, encoding=own, num_key_value_heads=heads)
        for own, heads in zip(
            (encoding and encoding() for _ in "12"),
            (key_heads, None),
            strict=True,
        )
    )
    grouped(INPUTS, OTHERS), full(INPUTS, OTHERS)
    full.encoding.set_weights(grouped.encoding.get_weights())
    full.query_dense.set_weights(grouped.query_dense.get_weights())
    full.output_dense.set_weights(grouped.output_dense.get_weights())
    for name, width in (("key_dense", 4), ("value_dense", 3)):
        weights = getattr(grouped, name).get_weights()
        assert weights[0].shape == (MODEL_DIM, key_heads * width)
        repeated = [
            np.repeat(
                weight.reshape(-1, key_heads, width), 4 // key_heads, axis=1
            )
            for weight in weights
        ]
        kernel, bias = repeated
        getattr(full, name).set_weights(
            [kernel.reshape(MODEL_DIM, -1), bias.reshape(-1)]
        )
    np.testing.assert_allclose(
        grouped(INPUTS, OTHERS), full(INPUTS, OTHERS), atol=1e-5
    )


@pytest.mark.parametrize("encoding", [None, RoPE, ALiBi])
def test_scores_that_are_not_scaled_are_those_of_larger_queries(encoding):
    arguments = {"bias_initializer": "ones"}
    unscaled = attention(
        encoding and encoding(), scale_scores=False, **arguments
    )
    scaled = attention(encoding and encoding(), **arguments)
    unscaled(INPUTS, INPUTS), scaled(INPUTS, INPUTS)
    query, query_bias, *others = unscaled.get_weights()
    scaled.set_weights([query * WIDTH**0.5, query_bias * WIDTH**0.5, *others])
    np.testing.assert_allclose(
        unscaled(INPUTS, INPUTS), scaled(INPUTS, INPUTS), atol=1e-5
    )


def test_the_first_queries_are_scaled_where_scores_are_not():
    layer = attention(scale_scores=False, kernel_initializer="ones")
    layer.build(INPUTS.shape, INPUTS.shape)
    np.testing.assert_allclose(layer.query_dense.kernel, 8**-0.5)
    np.testing.assert_allclose(layer.key_dense.kernel, 1)


def count_draws(layer, monkeypatch):
    draws = []
    sample = layer.encoding.find_positions

    def counted(*args, **kwargs):
        draws.append(sample(*args, **kwargs))
        return draws[-1]

    monkeypatch.setattr(layer.encoding, "find_positions", counted)
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


def normed(inputs):
    return keras.layers.LayerNormalization()(inputs)


APART = {
    "of equal numbers": lambda layer: layer(normed(INPUTS), normed(INPUTS)),
    "in a graph": lambda layer: tf.function(lambda q, v: layer(q, v))(
        tf.constant(INPUTS), tf.constant(INPUTS)
    ),
    "of another sequence": lambda layer: layer(INPUTS, OTHERS),
    "with positions of the queries": lambda layer: layer(
        INPUTS, OTHERS, positions=np.arange(6)
    ),
    "with positions of the keys": lambda layer: layer(
        INPUTS, OTHERS, key_positions=np.arange(9)
    ),
    "of symbols": lambda layer: layer(
        keras.Input((6, MODEL_DIM)), keras.Input((6, MODEL_DIM))
    ),
}


@pytest.mark.parametrize("case", APART)
def test_positions_are_never_drawn_apart(case):
    message = "apart.*one tensor as query and value.*`key_positions`"
    with pytest.raises(ValueError, match=message):
        APART[case](attention(RandomizedRoPE()))


def test_positions_given_to_both_are_not_drawn():
    layer = attention(RandomizedRoPE())
    layer(INPUTS, OTHERS, positions=np.arange(6), key_positions=np.arange(9))


def alike(tokens=6):
    """Tokens that differ by nothing but their positions."""
    return np.ones((2, tokens, MODEL_DIM), "float32")


SELF = {
    "arrays": lambda layer, x: layer(x, x),
    "key and value": lambda layer, x: layer(x, x, x),
    "another value": lambda layer, x: layer(x, x + 0, key=x),
    "tensors": lambda layer, x: layer(*[tf.constant(x)] * 2),
    "variables": lambda layer, x: layer(*[keras.Variable(x)] * 2),
    "a graph": lambda layer, x: tf.function(lambda x: layer(x, x))(x),
    "a functional model": lambda layer, x: functional(layer)(x),
    "without state": lambda layer, x: layer.stateless_call(
        layer.trainable_variables,
        layer.non_trainable_variables,
        *[tf.constant(x)] * 2,
    )[0],
    "said by the caller": lambda layer, x: layer(x, x + 0, self_attention=True),
}


def functional(layer):
    inputs = keras.Input((6, MODEL_DIM))
    return keras.Model(inputs, layer(inputs, inputs))


@pytest.mark.parametrize("case", SELF)
def test_self_attention_draws_one_set_of_positions(case, monkeypatch):
    layer = attention(RandomizedRoPE(seed=1))
    layer(alike(), alike(), self_attention=True)
    draws = count_draws(layer, monkeypatch)
    SELF[case](layer, alike())
    assert len(draws) == 1


def test_more_queries_than_keys_cannot_be_causal():
    layer = attention()
    message = "use_causal_mask needs at least as many keys.*9 queries and 6"
    with pytest.raises(ValueError, match=message):
        layer(OTHERS, INPUTS, use_causal_mask=True)


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
    layer = attention(output_shape=5)
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
    "output_shape": (2, 6),
    "attention_axes": 2,
    "sliding_window": 2,
    "flash_attention": False,
    "kernel_initializer": "he_normal",
    "bias_initializer": "zeros",
    "kernel_regularizer": "l1",
    "bias_regularizer": "l1",
    "activity_regularizer": "l1",
    "kernel_constraint": "non_neg",
    "bias_constraint": "max_norm",
    "use_gate": True,
    "seed": 2,
    "num_key_value_heads": 1,
    "scale_scores": False,
    "score_factor": "log_length",
    "train_length": 3,
    "logit_soft_cap": 0.1,
    "use_query_key_norm": True,
    "norm_epsilon": 0.5,
    "use_sinks": True,
    "use_entmax": True,
    "sink_tokens": 1,
    "chunk_size": 4,
    "fused": False,
}


BASES = {
    "norm_epsilon": {"use_query_key_norm": True},
    "sink_tokens": {"sliding_window": 2},
}
"""With which arguments one more shows."""


def effects(layer, x, training):
    """Outputs, losses, and weights as constraints leave them."""
    output = layer(x, x, training=training)
    weights = [
        weight if weight.constraint is None else weight.constraint(weight)
        for weight in layer.trainable_weights
    ]
    return output, layer.losses, weights


# What these change is in test_fused.py and test_flash.py.
ELSEWHERE = {"fused", "flash_attention"}


@pytest.mark.parametrize(
    "argument",
    product(
        sorted({*constructor_arguments(MultiHeadAttention)} - ELSEWHERE),
        # What Keras' layer does not have.
        keep=lambda name: (
            name
            not in inspect.signature(keras.layers.MultiHeadAttention).parameters
        ),
    ),
)
def test_every_argument_is_an_attribute_and_counts(argument):
    base = {
        "num_heads": HEADS,
        "key_dim": WIDTH,
        "dropout": 0.5,
        "bias_initializer": "ones",
        "seed": 1,
        **BASES.get(argument, {}),
    }
    outputs = []
    for changes in ({}, {argument: ARGUMENTS[argument]}):
        keras.utils.set_random_seed(0)
        layer = MultiHeadAttention(**{**base, **changes})
        # Evaluation is what the longest length of training changes.
        training = argument != "train_length"
        x = INPUTS
        if argument == "attention_axes":
            x = ops.reshape(x, (2, 2, 3, -1))
        outputs.append(effects(layer, x, training))
    assert_is_attribute(layer, argument, ARGUMENTS[argument])
    assert differ(*outputs)


def test_config_rebuilds_it():
    encoding = RandomizedRoPE(max_position=9, seed=1)
    changes = {
        "key_dim": 4,
        "attention_axes": 1,
        "encoding": encoding,
        "score_factor": "head",
    }
    layer = MultiHeadAttention(**ARGUMENTS | changes)
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
        (
            {"num_heads": 4, "key_dim": 4, "num_key_value_heads": 3},
            "num_key_value_heads=3 does not divide num_heads=4",
        ),
        (
            {"num_heads": 4, "key_dim": 4, "num_key_value_heads": -2},
            "num_key_value_heads .* got -2",
        ),
        (
            {"num_heads": 2, "key_dim": 4, "sink_tokens": 3},
            "sink_tokens=3 .* there is none: set sliding_window",
        ),
        *(
            (
                {"num_heads": 2, "key_dim": 4, "chunk_size": chunk_size},
                f"chunk_size must .* got {chunk_size!r}",
            )
            for chunk_size in (0, 2.0, "all")
        ),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(**arguments)


def test_a_mask_and_new_keys_must_fit_the_cache():
    layer = attention(RoPE())
    layer.build(INPUTS.shape, INPUTS.shape)
    tokens = INPUTS.shape[1]
    cache = layer.make_cache(len(INPUTS), tokens)
    x = INPUTS[:, :2]
    with pytest.raises(ValueError, match=f"2 new tokens .* cache of {tokens}"):
        layer(x, x, cache=cache, cache_update_index=tokens - 1)
    with pytest.raises(ValueError, match="got one of 2: pass `value_mask`"):
        layer(
            x,
            x,
            value_mask=ops.ones((len(INPUTS), 2), "bool"),
            cache=cache,
            cache_update_index=0,
        )


def test_quantized_projections_are_not_fused():
    layer = attention(use_bias=False)
    expected = layer(INPUTS, INPUTS)
    for dense in (layer.query_dense, layer.key_dense, layer.value_dense):
        dense.quantize("int8")
    np.testing.assert_allclose(layer(INPUTS, INPUTS), expected, atol=0.05)
