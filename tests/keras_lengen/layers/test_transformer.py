import functools
import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_lengen.checks.arguments import constructor_arguments
from keras_lengen.layers import (
    ALiBi,
    GeometricAttention,
    MultiHeadAttention,
    RelativeEncoding,
    RoPE,
    T5Bias,
    TransformerBlock,
)
from tests.keras_lengen.layers.arguments import (
    assert_config_round_trip,
    assert_is_attribute,
    differ,
)
from tests.keras_lengen.layers.encodings.table import (
    HEADS,
    MODEL_DIM,
    TOKENS,
    random_inputs,
)
from tests.products import product

INPUTS = ops.convert_to_tensor(random_inputs("embeddings")[0])
MEMORY = ops.convert_to_tensor(
    random_inputs("embeddings", tokens=9)[0][..., :6]
)
MEMORY_MASK = np.arange(9) < np.array([[7], [9]])


@keras.saving.register_keras_serializable(package="tests")
class SharperAttention(MultiHeadAttention):
    """An attention of one's own, which starts with larger scores."""

    def build(self, *shapes):
        super().build(*shapes)
        self.query_dense.kernel.assign(4 * self.query_dense.kernel)


def layer_norm(x, epsilon=1e-5):
    return rms_norm(x - x.mean(axis=-1, keepdims=True), epsilon)


def rms_norm(x, epsilon=1e-6):
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + epsilon)


@pytest.mark.parametrize("normalization", ["post", "pre", None])
@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
@pytest.mark.parametrize("cross", [False, True], ids=["", "cross"])
def test_norms_stand_where_they_should(normalization, norm, cross):
    block = TransformerBlock(
        HEADS,
        normalization=normalization,
        rms_norm=norm is rms_norm,
        encoding=ALiBi(),
        cross_attention=cross,
        cross_encoding=RoPE() if cross else None,
    )
    positions = {"positions": np.arange(3, 9)}
    of_memory = {"memory_positions": np.arange(9)[::-1].copy()}
    memory = {"memory": MEMORY, "memory_mask": MEMORY_MASK, **of_memory}
    output = block(INPUTS, **positions, **(memory if cross else {}))

    def attend(x):
        return block.attention_layer(x, x, **positions)

    def cross_attend(x):
        return block.cross_attention_layer(
            x,
            MEMORY,
            value_mask=MEMORY_MASK,
            key_positions=of_memory["memory_positions"],
            **positions,
        )

    def feed_forward(x):
        return block.output_dense(block.hidden_dense(x))

    x = INPUTS
    for part in (attend, *([cross_attend] * cross), feed_forward):
        if normalization == "pre":
            x = x + part(ops.convert_to_tensor(norm(np.asarray(x))))
        else:
            x = x + part(x)
        if normalization == "post":
            x = ops.convert_to_tensor(norm(np.asarray(x)))
    np.testing.assert_allclose(output, x, atol=1e-5)


def test_norms_by_root_mean_square_have_no_offset():
    for rms, names in ((True, {"scale"}), (False, {"gamma", "beta"})):
        block = TransformerBlock(HEADS, rms_norm=rms, cross_attention=True)
        block.build(INPUTS.shape)
        for norm in (
            block.attention_norm,
            block.cross_attention_norm,
            block.feedforward_norm,
        ):
            assert {weight.name for weight in norm.weights} == names


def dense_layers(block):
    """The projections of the attentions, and the feed-forward network."""
    attentions = [
        getattr(attention, f"{name}_dense")
        for attention in (block.attention_layer, block.cross_attention_layer)
        for name in ("query", "key", "value", "output")
    ]
    return attentions, [block.hidden_dense, block.output_dense]


@pytest.mark.parametrize(
    ("use_bias", "in_attention", "in_feedforward"),
    [("feedforward", False, True), (True, True, True), (False, False, False)],
)
def test_biases_are_where_they_are_wanted(
    use_bias, in_attention, in_feedforward
):
    block = TransformerBlock(HEADS, use_bias=use_bias, cross_attention=True)
    block(INPUTS, memory=MEMORY)
    attentions, feedforward = dense_layers(block)
    assert {len(dense.weights) for dense in attentions} == {1 + in_attention}
    assert {len(dense.weights) for dense in feedforward} == {1 + in_feedforward}


def test_all_kernels_are_initialized_as_wanted():
    block = TransformerBlock(
        HEADS, kernel_initializer="ones", cross_attention=True
    )
    block(INPUTS, memory=MEMORY)
    attentions, feedforward = dense_layers(block)
    for dense in (*attentions, *feedforward):
        np.testing.assert_array_equal(dense.kernel, np.ones(dense.kernel.shape))
    block = TransformerBlock(
        HEADS, kernel_initializer="glorot_normal", cross_attention=True
    )
    block(INPUTS, memory=INPUTS)
    attentions, _ = dense_layers(block)
    kernels = {np.asarray(dense.kernel).tobytes() for dense in attentions}
    assert len(kernels) == 8


@pytest.mark.parametrize("attention", [None, GeometricAttention])
def test_attentions_get_their_arguments(attention):
    arguments = {
        "num_key_value_heads": 1,
        "scale_scores": False,
        "chunk_size": 4,
        "fused": False,
    }
    block = TransformerBlock(
        HEADS,
        attention=attention,
        attention_dropout=0.5,
        cross_attention=True,
        **arguments,
    )
    block(INPUTS, memory=MEMORY)
    for layer in (block.attention_layer, block.cross_attention_layer):
        assert layer.dropout == 0.5
        assert {name: getattr(layer, name) for name in arguments} == arguments


def test_a_block_with_cross_attention_needs_memory():
    with pytest.raises(ValueError, match="needs `memory`"):
        TransformerBlock(HEADS, cross_attention=True)(INPUTS)


def test_memory_that_is_masked_is_as_good_as_absent():
    block = TransformerBlock(HEADS, cross_attention=True)
    alone = block(INPUTS, memory=embedded([[5, 6, 7], [1, 2, 3]]))
    padded = embedded([[0, 5, 6, 7, 0], [1, 2, 0, 0, 3]])
    by_keras = block(INPUTS, memory=padded)
    np.testing.assert_allclose(by_keras, alone, atol=1e-6)
    given = block(
        INPUTS,
        memory=np.asarray(padded),
        memory_mask=np.asarray(padded._keras_mask),
    )
    np.testing.assert_allclose(given, alone, atol=1e-6)


def test_padding_is_not_numbered_in_cross_attention():
    block = TransformerBlock(
        HEADS, cross_attention=True, cross_encoding=RoPE(), encoding=RoPE()
    )
    alone = block(embedded([[5, 6, 7]]), memory=MEMORY[:1])
    padded = block(embedded([[0, 0, 5, 6, 7]]), memory=MEMORY[:1])
    np.testing.assert_allclose(padded[:, 2:], alone, atol=1e-6)


@pytest.mark.parametrize("normalization", product(["post", "pre"], ["pre"]))
@pytest.mark.parametrize("attention", [None, GeometricAttention])
def test_a_cache_changes_nothing(normalization, attention):
    block = TransformerBlock(
        HEADS,
        normalization=normalization,
        encoding=None if attention else ALiBi(),
        attention=attention,
        cross_attention=True,
        cross_encoding=T5Bias(),
        num_key_value_heads=1,
        use_causal_mask=True,
    )
    positions = np.array([0, 3, 4, 9, 30, 31])
    of_memory = {"memory_positions": np.arange(9), "memory_mask": MEMORY_MASK}
    full = block(INPUTS, positions=positions, memory=MEMORY, **of_memory)
    cache = block.make_cache(2, TOKENS, MEMORY)
    assert cache["cross_attention"][0].shape == (2, 9, 1, MODEL_DIM // HEADS)
    for start, end in ((0, 3), (3, 4), (4, 6)):
        output, cache = block(
            INPUTS[:, start:end],
            positions=positions[start:end],
            key_positions=positions,
            memory=MEMORY if start == 0 else None,
            cache=cache,
            cache_update_index=start,
            **of_memory,
        )
        np.testing.assert_allclose(output, full[:, start:end], atol=1e-5)


def test_padding_in_a_cache_changes_nothing():
    block = TransformerBlock(HEADS, encoding=ALiBi(), use_causal_mask=True)
    mask = np.array([[0, 0, 1, 1, 1, 1], [1, 1, 0, 0, 1, 1]], "bool")
    full = block(INPUTS, mask=mask)
    cache = block.make_cache(2, TOKENS)
    for start, end in ((0, 4), (4, 6)):
        output, cache = block(
            INPUTS[:, start:end],
            mask=mask,
            cache=cache,
            cache_update_index=start,
        )
        real = mask[:, start:end]
        np.testing.assert_allclose(
            output[real], full[:, start:end][real], atol=1e-5
        )


def test_symbolic_shapes_with_a_cache():
    block = TransformerBlock(HEADS)
    block.build(INPUTS.shape)
    inputs = keras.Input((1, MODEL_DIM), 2)
    cache = keras.tree.map_structure(
        lambda part: keras.KerasTensor(part.shape, part.dtype),
        block.make_cache(2, 9),
    )
    output, new_cache = block(inputs, cache=cache, cache_update_index=3)
    assert output.shape == inputs.shape
    keras.tree.assert_same_structure(new_cache, cache)


def test_the_feed_forward_part_has_one_hidden_layer():
    block = TransformerBlock(HEADS, feedforward_dim=5, normalization=None)
    block(INPUTS)
    hidden, hidden_bias = block.hidden_dense.get_weights()
    kernel, bias = block.output_dense.get_weights()
    assert hidden.shape == (MODEL_DIM, 5)
    x = np.asarray(INPUTS)
    expected = np.maximum(x @ hidden + hidden_bias, 0) @ kernel + bias
    np.testing.assert_allclose(
        block.output_dense(block.hidden_dense(INPUTS)), expected, atol=1e-5
    )
    assert TransformerBlock(HEADS).feedforward_dim is None
    wide = TransformerBlock(HEADS)
    wide(INPUTS)
    assert wide.hidden_dense.units == 4 * MODEL_DIM


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        # SwiGLU, GEGLU and GLU, by their formulas.
        ("silu", lambda x: x * sigmoid(x)),
        ("gelu", lambda x: x * (1 + np.vectorize(math.erf)(x / 2**0.5)) / 2),
        ("sigmoid", sigmoid),
    ],
)
def test_a_gate_multiplies_the_hidden_layer(activation, function):
    block = TransformerBlock(
        HEADS,
        feedforward_dim=5,
        normalization=None,
        activation=activation,
        gated_feedforward=True,
    )
    block.build(INPUTS.shape)
    generator = np.random.default_rng(0)
    block.set_weights(
        [generator.normal(size=each.shape) / 4 for each in block.weights]
    )
    x = np.asarray(INPUTS + block.attention_layer(INPUTS, INPUTS))
    gate, up, down = (
        (np.asarray(dense.kernel), np.asarray(dense.bias))
        for dense in (block.gate_dense, block.hidden_dense, block.output_dense)
    )
    hidden = function(x @ gate[0] + gate[1]) * (x @ up[0] + up[1])
    expected = x + hidden @ down[0] + down[1]
    np.testing.assert_allclose(block(INPUTS), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("rms", "function"), [(True, rms_norm), (False, layer_norm)]
)
@pytest.mark.parametrize("epsilon", [None, 0.25])
def test_norms_add_their_epsilon(rms, function, epsilon):
    block = TransformerBlock(HEADS, rms_norm=rms, norm_epsilon=epsilon)
    block.build(INPUTS.shape)
    x = np.asarray(INPUTS)
    expected = function(x) if epsilon is None else function(x, epsilon)
    for norm in (block.attention_norm, block.feedforward_norm):
        np.testing.assert_allclose(norm(INPUTS), expected, atol=1e-5)


@pytest.mark.parametrize(("given", "expected"), [(None, 1e-6), (0.3, 0.3)])
def test_queries_and_keys_have_the_epsilon_of_norms(given, expected):
    block = TransformerBlock(HEADS, use_query_key_norm=True, norm_epsilon=given)
    block.build(INPUTS.shape)
    assert block.attention_layer.norm_epsilon == expected


ARGUMENTS = {
    "num_heads": 4,
    "feedforward_dim": 5,
    "dropout": 0.5,
    "attention_dropout": 0.5,
    "encoding": ALiBi(),
    "attention": SharperAttention,
    "cross_attention": False,
    "cross_encoding": ALiBi(),
    "normalization": "pre",
    "rms_norm": True,
    "norm_epsilon": 0.5,
    "activation": "gelu",
    "gated_feedforward": True,
    "use_bias": True,
    "num_key_value_heads": 1,
    "scale_scores": False,
    "score_factor": "log_length",
    "train_length": 3,
    "logit_soft_cap": 0.1,
    "use_query_key_norm": True,
    "use_gate": True,
    "use_sinks": True,
    "use_entmax": True,
    "sliding_window": 2,
    "sink_tokens": 1,
    "chunk_size": 4,
    "fused": False,
    "kernel_initializer": "glorot_normal",
    "use_causal_mask": True,
}


BASES = {"sink_tokens": {"sliding_window": 2}}
"""With which arguments one more shows."""


def block_and_outcome(argument=None, **changes):
    base = {
        "num_heads": HEADS,
        "cross_attention": True,
        # Which blocks draw otherwise.
        "attention_dropout": 0.2,
        **BASES.get(argument, {}),
    }
    keras.utils.set_random_seed(0)
    block = TransformerBlock(**{**base, **changes})
    memory = MEMORY if block.cross_attention else None
    # Evaluation is what the longest length of training changes.
    training = argument != "train_length"
    output = block(INPUTS, memory=memory, training=training)
    # Weights, too: biases start as zeros, which change nothing yet, and
    # queries start smaller by what scores are not divided by.
    return block, (output, [np.array(weight) for weight in block.weights])


@functools.cache
def unchanged_outcome(argument=None):
    return block_and_outcome(argument)[1]


@pytest.mark.parametrize(
    "argument",
    product(
        sorted(constructor_arguments(TransformerBlock)),
        # What the block does not just pass on to its attention.
        keep=lambda name: name not in constructor_arguments(MultiHeadAttention),
    ),
)
def test_every_argument_is_an_attribute_and_counts(argument):
    value = ARGUMENTS[argument]
    block, outcome = block_and_outcome(argument, **{argument: value})
    special = argument if argument in ("train_length", *BASES) else None
    if argument == "fused":
        # The same numbers, and only on TPUs.
        assert block.attention_layer.fused is value
    else:
        assert differ(unchanged_outcome(special), outcome)
    if argument == "activation":
        value = keras.activations.get(value)
    assert_is_attribute(block, argument, value)


def test_config_rebuilds_it():
    block = TransformerBlock(
        HEADS,
        encoding=RelativeEncoding(),
        attention=SharperAttention,
        cross_attention=True,
        cross_encoding=T5Bias(),
        normalization="pre",
        activation="gelu",
        kernel_initializer="glorot_normal",
    )
    assert_config_round_trip(block)
    block.build(INPUTS.shape)
    assert_config_round_trip(block)
    assert isinstance(block.attention_layer, SharperAttention)


@pytest.mark.parametrize(
    "encoding", [None, RelativeEncoding()], ids=["none", "relative"]
)
def test_a_saved_model_is_the_same(encoding, tmp_path):
    inputs = keras.Input((None, MODEL_DIM))
    positions = keras.Input((None,), dtype="int32")
    block = TransformerBlock(
        HEADS, encoding=encoding, attention=SharperAttention
    )
    model = keras.Model([inputs, positions], block(inputs, positions=positions))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    batch = [np.asarray(INPUTS), np.tile([0, 2, 3, 5, 8, 9], (2, 1))]
    np.testing.assert_array_equal(loaded(batch), model(batch))


def test_a_saved_model_with_memory_is_the_same(tmp_path, loading):
    inputs = keras.Input((None, MODEL_DIM))
    memory = keras.Input((None, 6))
    memory_mask = keras.Input((None,), dtype="bool")
    block = TransformerBlock(
        HEADS,
        cross_attention=True,
        cross_encoding=RelativeEncoding(),
        rms_norm=True,
        use_bias=True,
    )
    output = block(inputs, memory=memory, memory_mask=memory_mask)
    model = keras.Model([inputs, memory, memory_mask], output)
    batch = [np.asarray(INPUTS), np.asarray(MEMORY), MEMORY_MASK]
    loading.check(model, tmp_path / "model.keras", batch)


def test_tokens_see_no_later_ones_when_causal():
    block = TransformerBlock(HEADS, use_causal_mask=True, encoding=ALiBi())
    output = block(INPUTS)
    np.testing.assert_allclose(block(INPUTS[:, :4]), output[:, :4], atol=1e-6)


def test_hidden_tokens_are_as_good_as_absent():
    block = TransformerBlock(HEADS, encoding=ALiBi())
    tokens = np.array([0, 2, 5])
    mask = np.zeros((TOKENS, TOKENS), "bool")
    mask[:, tokens] = True
    inputs = np.asarray(INPUTS)
    np.testing.assert_allclose(
        block(inputs[:, tokens], positions=tokens),
        np.asarray(block(inputs, attention_mask=mask))[:, tokens],
        atol=1e-6,
    )


def embedded(token_ids, dtype="float32"):
    keras.utils.set_random_seed(0)
    layer = keras.layers.Embedding(9, MODEL_DIM, mask_zero=True, dtype=dtype)
    return layer(np.array(token_ids))


@pytest.mark.parametrize("normalization", product(["post", "pre"], ["pre"]))
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("positions", [None, np.arange(5)], ids=["", "given"])
def test_padding_by_masks_of_keras_changes_nothing(
    normalization, policy, positions
):
    block = TransformerBlock(
        HEADS, encoding=ALiBi(), normalization=normalization, dtype=policy
    )
    padded = block(embedded([[5, 6, 7, 0, 0]]), positions=positions)
    assert padded._keras_mask.numpy().tolist() == [[True] * 3 + [False] * 2]
    alone = block(embedded([[5, 6, 7]]))
    np.testing.assert_allclose(
        ops.cast(padded[:, :3], "float32"),
        ops.cast(alone, "float32"),
        atol=1e-6 if policy == "float32" else 0.05,
    )


@pytest.mark.parametrize(
    "normalization", product(["post", "pre", None], ["pre"])
)
@pytest.mark.parametrize("inputs_dtype", ["float32", "bfloat16"])
def test_half_precision(normalization, inputs_dtype):
    block = TransformerBlock(
        HEADS, normalization=normalization, dtype="mixed_bfloat16"
    )
    output = block(ops.cast(INPUTS, inputs_dtype))
    symbol = block(keras.Input((TOKENS, MODEL_DIM), dtype=inputs_dtype))
    for dtype in (output.dtype, symbol.dtype):
        assert keras.backend.standardize_dtype(dtype) == "bfloat16"
    assert {weight.dtype for weight in block.weights} == {"float32"}


def test_dropout_is_for_training():
    block = TransformerBlock(HEADS, dropout=0.5)
    plain = block(INPUTS)
    np.testing.assert_array_equal(block(INPUTS, training=False), plain)
    assert not np.allclose(block(INPUTS, training=True), plain, atol=1e-2)


def test_kernels_start_as_in_the_authors_code():
    block = TransformerBlock(8)
    block.build((None, None, 64))
    for dense in (
        block.attention_layer.query_dense,
        block.attention_layer.output_dense,
        block.hidden_dense,
        block.output_dense,
    ):
        kernel = np.asarray(dense.kernel)
        # Cut off at two deviations of 1 / sqrt(inputs).
        deviation = kernel.shape[0] ** -0.5
        assert abs(kernel.std() / deviation - 0.87963) < 0.03
        assert np.abs(kernel).max() <= 2 * deviation * 1.0001


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_heads": 3}, "num_heads=3 does not divide the width 16"),
        ({"num_heads": 2, "normalization": "rms"}, "normalization .* 'rms'"),
        ({"num_heads": 2, "use_bias": "all"}, "use_bias .* got 'all'"),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        TransformerBlock(**arguments)(INPUTS)


class Unregistered(MultiHeadAttention):
    pass


def test_an_unregistered_attention_is_not_replaced_in_silence():
    config = TransformerBlock(2, attention=Unregistered).get_config()
    with pytest.raises(ValueError, match="no registered class 'Unregistered'"):
        TransformerBlock.from_config(config)


def test_a_function_initializes():
    def ones(shape, dtype=None):
        return keras.ops.ones(shape, dtype)

    block = TransformerBlock(2, kernel_initializer=ones)
    block.build((None, None, 16))
    for dense in (block.hidden_dense, block.attention_layer.query_dense):
        np.testing.assert_array_equal(dense.kernel, 1)
