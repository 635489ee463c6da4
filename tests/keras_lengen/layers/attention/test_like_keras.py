"""Attention without an encoding is that of Keras, with loaded weights."""

import inspect

import keras
import numpy as np
import pytest
from keras import ops

from keras_lengen.layers import MultiHeadAttention

RANDOM = np.random.default_rng(3)
QUERY = RANDOM.normal(size=(3, 5, 8)).astype("float32")
VALUE = RANDOM.normal(size=(3, 4, 8)).astype("float32")
KEY = RANDOM.normal(size=(3, 4, 6)).astype("float32")
SIZES = ("num_heads", "key_dim", "value_dim")
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
            rtol=1e-5,
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
        {"output_shape": (3, 2)},
        {"output_shape": (2, 1, 3), "use_bias": False, "use_gate": True},
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
    # On JAX, Keras computes values of another width only with scores.
    expected, _ = theirs(*inputs, return_attention_scores=True)
    np.testing.assert_allclose(ours(*inputs), expected, rtol=1e-5, atol=1e-5)
    assert ours.count_params() == theirs.count_params()
    assert len(ours.trainable_weights) == len(theirs.trainable_weights)
    shapes = [each.shape for each in inputs]
    assert ours.compute_output_shape(*shapes) == theirs.compute_output_shape(
        *shapes
    )


@pytest.mark.parametrize(
    "arguments", [{}, {"use_bias": False, "use_gate": True}], ids=str
)
def test_shared_heads_of_keys(arguments):
    theirs = keras.layers.GroupQueryAttention(4, 6, 2, **arguments)
    theirs.build(QUERY.shape, QUERY.shape)
    ours = MultiHeadAttention(6, 4, num_key_value_heads=2, **arguments)
    ours.load_keras_weights(theirs)
    expected = theirs(QUERY, QUERY, use_causal_mask=True)
    found = ours(QUERY, QUERY, use_causal_mask=True)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    "arguments", [{}, {"use_gate": True}, {"output_shape": (3, 2)}], ids=str
)
def test_weights_may_have_the_axes_of_keras(arguments):
    inputs = INPUTS["key"]
    ours, theirs = pair(inputs, **arguments)
    weights = [RANDOM.normal(size=w.shape) for w in theirs.weights]
    theirs.set_weights(weights)
    ours.set_weights(weights)
    assert_alike(ours, theirs, inputs, tolerance=1e-4)
    ours.set_weights(ours.get_weights())
    assert_alike(ours, theirs, inputs, tolerance=1e-4)
    with pytest.raises(ValueError, match="not compatible"):
        ours.set_weights([weights[0].T, *weights[1:]])
    with pytest.raises(ValueError, match="weight list of length"):
        ours.set_weights(weights[1:])
    with pytest.raises(ValueError, match="expecting 0 weights"):
        MultiHeadAttention(2, 4).set_weights(weights)


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
    """Compares real queries only: padded queries see no key in Keras."""
    ids = np.array([[1, 2, 3, 0, 0], [3, 3, 1, 1, 2], [1, 0, 0, 0, 0]])
    embedding = keras.layers.Embedding(4, 8, mask_zero=True)
    ours, theirs = pair(INPUTS["self"], use_gate=use_gate)
    outputs = []
    for layer in (ours, theirs):
        x = embedding(ids)
        outputs.append(layer(x, x, use_causal_mask=causal))
    np.testing.assert_array_equal(outputs[0]._keras_mask, ids > 0)
    found, expected = (np.asarray(each)[ids > 0] for each in outputs)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_masks_of_values_and_of_keys():
    inputs = INPUTS["key"]
    value_mask = np.array([[1, 0, 1, 1], [1, 1, 1, 1], [0, 1, 1, 1]], "bool")
    key_mask = np.array([[1, 1, 1, 0], [1, 1, 0, 1], [1, 1, 1, 1]], "bool")
    ours, theirs = pair(inputs)
    for masks in (
        {"value_mask": value_mask, "key_mask": key_mask},
        {"key_mask": key_mask},
    ):
        assert_alike(ours, theirs, inputs, **masks)


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


@pytest.mark.product
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


HIGH = {
    "one axis": ((3, 4), (3, 2), 2),
    "two axes": ((3, 4), (3, 2), (1, 2)),
    "last two of three": ((5, 3, 4), (5, 3, 2), (2, 3)),
    "the first": ((4, 3), (2, 3), 1),
    "negative": ((3, 4), (3, 2), -2),
    "all": ((2, 3), (1, 5), None),
    "in another order": ((3, 4), (3, 2), (2, 1)),
}


@pytest.mark.parametrize("use_gate", [False, True])
@pytest.mark.parametrize("case", HIGH)
def test_attention_over_axes(case, use_gate):
    query_sizes, value_sizes, axes = HIGH[case]
    inputs = [
        RANDOM.normal(size=(3, *sizes, 8)).astype("float32")
        for sizes in (query_sizes, value_sizes)
    ]
    ours, theirs = pair(
        inputs, attention_axes=axes, use_gate=use_gate, value_dim=3
    )
    assert_alike(ours, theirs, inputs)
    np.testing.assert_allclose(ours(*inputs), theirs(*inputs), atol=1e-5)
    assert len(ours.trainable_weights) == 8 + 2 * use_gate
    # Keras takes all masks whose axes are those of scores.
    scores = ours(*inputs, return_attention_scores=True)[1]
    mask = RANDOM.random(scores.shape) < 0.6
    mask |= np.arange(scores[..., :, :].shape[-1]) == 0
    np.testing.assert_allclose(
        ours(*inputs, attention_mask=mask),
        theirs(*inputs, attention_mask=mask),
        atol=1e-5,
    )


def test_causal_attention_over_the_first_axis():
    x = RANDOM.normal(size=(1, 5, 3, 8)).astype("float32")
    ours, theirs = pair((x, x), attention_axes=1)
    assert_alike(ours, theirs, (x, x), use_causal_mask=True)


SHAPES = [
    ((4, 8), (2, 8), None, None),
    ((4, 8), (2, 8), (2, 3), None),
    ((4, 8), (2, 8), None, (3, 4)),
    ((4, 8), (2, 8), (2, 3), (1, 5)),
    ((4, 2, 3, 8), (1, 1, 5, 8), (1, 1, 5, 2), None),
    ((4, 2, 3, 8), (1, 1, 5, 8), (1, 1, 5, 2), (3, 2)),
    ((4, 2, 3, 8), (4, 2, 3, 7), (4, 2, 3, 8), None),
]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_the_computed_shape_is_that_of_the_output(shapes):
    *shapes, output_shape = shapes
    shapes = [None if each is None else (7, *each) for each in shapes]
    inputs = [None if each is None else np.ones(each) for each in shapes]
    layer = MultiHeadAttention(2, 2, 2, output_shape=output_shape)
    theirs = keras.layers.MultiHeadAttention(2, 2, 2, output_shape=output_shape)
    output = layer(*inputs)
    assert output.shape == theirs(*inputs).shape
    assert output.shape == layer.compute_output_shape(*shapes)
    as_lists = [None if each is None else list(each) for each in shapes]
    assert output.shape == layer.compute_output_shape(*as_lists)
    query, value, key = (
        None if each is None else keras.KerasTensor(each) for each in shapes
    )
    spec = layer.compute_output_spec(query, value, key)
    assert spec.shape == output.shape


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 4, 8), (2, 2, 7), (2,)),
        ((2, 4, 8), (2, 2, 8), (2, 1, 7)),
        ((2, 4, 2, 3, 8), (2, 1, 1, 5, 8), (2, 1, 15, 5, 2)),
    ],
    ids=str,
)
def test_keys_must_have_the_axes_of_values(shapes):
    for kind in (MultiHeadAttention, keras.layers.MultiHeadAttention):
        layer = kind(4, 2, 2)
        with pytest.raises(ValueError, match="must be equal"):
            layer.compute_output_shape(*shapes)
        with pytest.raises(ValueError, match="must be equal"):
            layer(*(np.ones(shape) for shape in shapes))


def test_arguments_have_the_order_of_keras():
    theirs, ours = (
        list(inspect.signature(each).parameters.values())
        for each in (
            keras.layers.MultiHeadAttention.__init__,
            MultiHeadAttention.__init__,
        )
    )
    for own, other in zip(ours, theirs[:-1], strict=False):
        assert (own.name, own.kind) == (other.name, other.kind)
        assert own.default == other.default
    theirs, ours = (
        list(inspect.signature(each).parameters)
        for each in (
            keras.layers.MultiHeadAttention.call,
            MultiHeadAttention.call,
        )
    )
    assert ours[: len(theirs)] == theirs


def test_call_arguments_may_be_given_in_order():
    inputs = INPUTS["self"]
    ours, _ = pair(inputs)
    mask = np.tri(5, dtype=bool)
    in_order = (None, None, None, None, mask, True, False, False)
    expected = ours(*inputs, attention_mask=mask, return_attention_scores=True)
    found = ours(*inputs, *in_order)
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(own, other)
    with pytest.raises(TypeError, match=r"given by name.* got 1 more"):
        ours(*inputs, *in_order, None)


PENALTIES = {
    "kernel_regularizer": "l2",
    "bias_regularizer": "l1",
    "activity_regularizer": keras.regularizers.L1L2(0.1, 0.2),
}


@pytest.mark.parametrize("use_gate", [False, True])
@pytest.mark.parametrize("axes", [None, 2])
@pytest.mark.parametrize("name", PENALTIES)
def test_losses(name, axes, use_gate):
    inputs = INPUTS["self"]
    if axes:
        inputs = (RANDOM.normal(size=(3, 2, 5, 8)).astype("float32"),) * 2
    arguments = {name: PENALTIES[name], "attention_axes": axes}
    ours, theirs = pair(inputs, use_gate=use_gate, **arguments)
    ours(*inputs), theirs(*inputs)
    assert len(ours.losses) == len(theirs.losses) == 4 + use_gate
    found, expected = (sum(layer.losses) for layer in (ours, theirs))
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.product
@pytest.mark.parametrize("name", ["kernel", "bias"])
def test_constraints(name):
    inputs = INPUTS["self"]
    ours, theirs = pair(
        inputs, use_gate=True, **{f"{name}_constraint": "non_neg"}
    )
    for layer in (ours, theirs):
        layer(*inputs)
        for part in ("query", "key", "value", "output", "gate"):
            dense = getattr(
                layer, f"{part}_dense", getattr(layer, f"_{part}_dense", None)
            )
            constraint = getattr(dense, name).constraint
            assert isinstance(constraint, keras.constraints.NonNeg)
        model = keras.Sequential([keras.layers.Dense(8), _Self(layer)])
        model.compile("sgd", "mse")
        model.fit(inputs[0], 9 * inputs[0], verbose=0)
    for part in ("query", "key", "value", "output", "gate"):
        assert np.min(getattr(getattr(ours, f"{part}_dense"), name)) >= 0


class _Self(keras.layers.Layer):
    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def call(self, x):
        return self.attention(x, x)


def test_a_summary_shows_the_output(capsys):
    model = keras.Sequential([_Self(MultiHeadAttention(2, 4, output_shape=3))])
    model.build((None, 5, 8))
    model.summary(expand_nested=True)
    assert "5, 3)" in capsys.readouterr().out


def test_projections_start_apart():
    initializer = keras.initializers.TruncatedNormal(stddev=0.02)
    layer = MultiHeadAttention(
        2, 4, use_gate=True, kernel_initializer=initializer
    )
    layer.build((2, 4, 8), (2, 4, 8))
    kernels = [
        np.asarray(getattr(layer, f"{part}_dense").kernel)
        for part in ("query", "key", "value", "output", "gate")
    ]
    for index, kernel in enumerate(kernels):
        for other in kernels[:index]:
            assert not np.allclose(kernel, other)


def test_lora_is_trained_saved_and_loaded(tmp_path):
    x = dict(zip("qvk", INPUTS["key"], strict=True))

    def make():
        layer = MultiHeadAttention(3, 8, use_bias=False, use_gate=True)
        inputs = {
            name: keras.Input(each.shape[1:], name=name)
            for name, each in x.items()
        }
        return keras.Model(inputs, layer(*inputs.values())), layer

    model, layer = make()
    for dense in (layer.query_dense, layer.key_dense, layer.value_dense):
        dense.enable_lora(2)
    assert len(layer.trainable_variables) == 8
    assert len(layer.non_trainable_variables) == 3
    model.compile("sgd", "mse")
    model.fit(x, QUERY, verbose=0)
    expected = model.predict(x, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded.predict(x, verbose=0), expected)
    model.save_weights(tmp_path / "model.weights.h5")
    plain, _ = make()
    plain.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_allclose(plain.predict(x, verbose=0), expected, atol=1e-6)


def test_policies_of_parts():
    policies = keras.dtype_policies.DTypePolicyMap()
    for part in ("query", "key", "value"):
        policies[f"mha/{part}"] = keras.dtype_policies.QuantizedDTypePolicy(
            "int8", "float32"
        )
    layer = MultiHeadAttention(3, 8, use_bias=False, dtype=policies, name="mha")
    layer.build(QUERY.shape, QUERY.shape)
    for part in ("query", "key", "value"):
        dense = getattr(layer, f"{part}_dense")
        assert str(dense._kernel.dtype).endswith("int8")


def test_masks_of_keras_give_no_warning():
    """Warnings are errors in all tests."""
    embedding = keras.layers.Embedding(4, 8, mask_zero=True)
    query = embedding(np.array([[1, 2, 3, 0, 0], [3, 3, 1, 1, 2]]))
    value = embedding(np.array([[1, 2, 0], [3, 0, 0]]))
    output = MultiHeadAttention(2, 2)(query, value)
    np.testing.assert_array_equal(
        output._keras_mask, [[True] * 3 + [False] * 2, [True] * 5]
    )


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
    [
        *({name: wrong} for name in SIZES for wrong in (0, -2, 1.5)),
        {"output_shape": 8.0},
        {"sliding_window": 0},
        {"sliding_window": -3},
    ],
    ids=str,
)
def test_both_refuse_wrong_sizes(arguments):
    arguments = {"num_heads": 2, "key_dim": 4, **arguments}
    for kind in (MultiHeadAttention, keras.layers.MultiHeadAttention):
        with pytest.raises(ValueError, match=r"must be|expected|Invalid"):
            kind(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"key_dim": 8}, r"kernel of the query .* \(8, 2, 8\); .* \(8, 2, 4\)"),
        ({"num_key_value_heads": 1}, r"kernel of the key .* \(8, 1, 4\)"),
        ({"use_bias": False}, "has no bias of the query .* same use_bias"),
        ({"use_gate": True}, "use_gate=True is not that"),
        ({"output_shape": 3}, r"kernel of the output .* \(2, 4, 3\)"),
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
