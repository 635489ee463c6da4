"""Attention without an encoding is that of Keras, with loaded weights."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_lengen.layers import MultiHeadAttention

RANDOM = np.random.default_rng(3)
QUERY = RANDOM.normal(size=(3, 5, 8)).astype("float32")
VALUE = RANDOM.normal(size=(3, 4, 8)).astype("float32")
KEY = RANDOM.normal(size=(3, 4, 6)).astype("float32")
INPUTS = {
    "self": (QUERY, QUERY),
    "cross": (QUERY, VALUE),
    "key": (QUERY, VALUE, KEY),
}


def pair(inputs, num_heads=2, key_dim=4, **arguments):
    """Our layer and that of Keras, of equal random weights."""
    theirs = keras.layers.MultiHeadAttention(num_heads, key_dim, **arguments)
    shapes = [each.shape for each in inputs]
    theirs.build(*shapes)
    theirs.set_weights(
        [RANDOM.normal(size=w.shape) / 2 for w in theirs.weights]
    )
    if "output_shape" in arguments:
        arguments["output_dim"] = arguments.pop("output_shape")
    ours = MultiHeadAttention(num_heads, key_dim, **arguments)
    ours.load_keras_weights(theirs)
    return ours, theirs


def assert_alike(ours, theirs, inputs, tolerance=1e-5, **arguments):
    found, expected = (
        layer(*inputs, return_attention_scores=True, **arguments)
        for layer in (ours, theirs)
    )
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            ops.cast(own, "float32"),
            ops.cast(other, "float32"),
            atol=tolerance,
        )


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"use_bias": False},
        {"value_dim": 3},
        {"use_gate": True},
        {"use_gate": True, "use_bias": False, "value_dim": 3},
        {"output_shape": 7},
        {"num_heads": 1, "key_dim": 1},
        {"num_heads": 12, "key_dim": 16},
    ],
    ids=str,
)
@pytest.mark.parametrize("inputs", INPUTS)
def test_outputs_and_scores(inputs, arguments):
    inputs = INPUTS[inputs]
    ours, theirs = pair(inputs, **arguments)
    assert_alike(ours, theirs, inputs)
    np.testing.assert_allclose(ours(*inputs), theirs(*inputs), atol=1e-5)
    assert ours.count_params() == theirs.count_params()
    assert len(ours.trainable_weights) == len(theirs.trainable_weights)
    shapes = [each.shape for each in inputs]
    assert ours.compute_output_shape(*shapes) == theirs.compute_output_shape(
        *shapes
    )


@pytest.mark.parametrize("use_gate", [False, True])
@pytest.mark.parametrize(
    "shape", [(5, 5), (1, 5, 5), (3, 5, 5), (3, 1, 5, 5), (3, 2, 5, 5)], ids=str
)
def test_masks(shape, use_gate):
    inputs = INPUTS["self"]
    mask = RANDOM.random(shape) < 0.6
    mask |= np.eye(5, dtype=bool)
    ours, theirs = pair(inputs, use_gate=use_gate)
    assert_alike(ours, theirs, inputs, attention_mask=mask)
    assert_alike(
        ours, theirs, inputs, attention_mask=mask, use_causal_mask=True
    )


@pytest.mark.parametrize("window", [1, 3, 9])
@pytest.mark.parametrize("causal", [False, True])
def test_sliding_windows(window, causal):
    inputs = INPUTS["self"]
    ours, theirs = pair(inputs, sliding_window=window)
    assert_alike(ours, theirs, inputs, use_causal_mask=causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("use_gate", [False, True])
def test_masks_of_embeddings(use_gate, causal):
    """Of real queries, because in Keras, padded queries see no key."""
    ids = np.array([[1, 2, 3, 0, 0], [3, 3, 1, 1, 2], [1, 0, 0, 0, 0]])
    embedding = keras.layers.Embedding(4, 8, mask_zero=True)
    x = embedding(ids)
    ours, theirs = pair(INPUTS["self"], use_gate=use_gate)
    outputs = []
    for layer in (ours, theirs):
        x = embedding(ids)
        outputs.append(layer(x, x, use_causal_mask=causal))
    np.testing.assert_array_equal(outputs[0]._keras_mask, ids > 0)
    found, expected = (np.asarray(each)[ids > 0] for each in outputs)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
@pytest.mark.parametrize("use_gate", [False, True])
def test_mixed_precision(policy, use_gate):
    inputs = INPUTS["self"]
    ours, theirs = pair(inputs, dtype=policy, use_gate=use_gate)
    found, expected = ours(*inputs), theirs(*inputs)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(
        ops.cast(found, "float32"), ops.cast(expected, "float32"), atol=0.2
    )


@pytest.mark.parametrize("use_gate", [False, True])
def test_quantized_to_int8(use_gate):
    inputs = INPUTS["self"]
    ours, theirs = pair(inputs, use_gate=use_gate)
    expected = theirs(*inputs)
    parts = ["query", "key", "value", "output", *["gate"] * use_gate]
    for name in parts:
        getattr(ours, f"{name}_dense").quantize("int8")
    scale = np.abs(expected).max()
    np.testing.assert_allclose(ours(*inputs), expected, atol=0.05 * scale)


def test_lora_begins_without_effect():
    inputs = INPUTS["self"]
    ours, theirs = pair(inputs, use_gate=True)
    before = len(ours.trainable_weights)
    ours.query_dense.enable_lora(2)
    ours.gate_dense.enable_lora(2)
    assert len(ours.trainable_weights) == before + 2
    assert_alike(ours, theirs, inputs)


def test_dropout_is_for_training():
    inputs = INPUTS["self"]
    ours, theirs = pair(inputs, dropout=0.5)
    assert_alike(ours, theirs, inputs, training=False)
    dropped = ours(*inputs, training=True)
    assert not np.allclose(dropped, theirs(*inputs), atol=1e-2)


@pytest.mark.parametrize("shape", [(1, 2, 3), (2, 3, 5)])
def test_symbolic_scores(shape):
    x = keras.Input(batch_shape=shape)
    output, scores = MultiHeadAttention(4, 2)(
        x, x, return_attention_scores=True
    )
    assert output.shape == shape
    assert scores.shape == (shape[0], 4, shape[1], shape[1])


@pytest.mark.parametrize(
    "arguments",
    [{"num_heads": 0}, {"num_heads": 1.5}, {"key_dim": -2}, {"value_dim": 0}],
    ids=str,
)
def test_both_refuse_wrong_sizes(arguments):
    arguments = {"num_heads": 2, "key_dim": 4, **arguments}
    for kind in (MultiHeadAttention, keras.layers.MultiHeadAttention):
        with pytest.raises(ValueError, match=r"must be|expected"):
            kind(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"key_dim": 8}, r"kernel of the query .* \(8, 2, 8\); .* \(8, 2, 4\)"),
        ({"num_key_value_heads": 1}, r"kernel of the key .* \(8, 1, 4\)"),
        ({"use_bias": False}, r"bias of the query .* None; .* \(2, 4\)"),
        ({"use_gate": True}, "use_gate=True is not that"),
        ({"output_dim": 3}, r"kernel of the output .* \(2, 4, 3\)"),
    ],
    ids=str,
)
def test_weights_of_other_shapes_are_refused(arguments, message):
    _, theirs = pair(INPUTS["self"])
    ours = MultiHeadAttention(**{"num_heads": 2, "key_dim": 4, **arguments})
    with pytest.raises(ValueError, match=message):
        ours.load_keras_weights(theirs)


def test_only_a_built_layer_of_keras_has_weights():
    ours = MultiHeadAttention(2, 4)
    with pytest.raises(ValueError, match="call it once, or build it"):
        ours.load_keras_weights(keras.layers.MultiHeadAttention(2, 4))
    with pytest.raises(ValueError, match=r"must be a keras.* got a Dense"):
        ours.load_keras_weights(keras.layers.Dense(2))
