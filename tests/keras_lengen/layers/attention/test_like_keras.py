"""Attention without an encoding is that of Keras, with loaded weights."""

import inspect

import keras
import numpy as np
import pytest

from keras_lengen.layers import MultiHeadAttention
from tests.covering import cover

RANDOM = np.random.default_rng(3)
QUERY = RANDOM.normal(size=(3, 5, 8)).astype("float32")
VALUE = RANDOM.normal(size=(3, 4, 8)).astype("float32")
KEY = RANDOM.normal(size=(3, 4, 6)).astype("float32")
INPUTS = {
    "self": (QUERY, QUERY),
    "cross": (QUERY, VALUE),
    "key": (QUERY, VALUE, KEY),
}
SELF = INPUTS["self"]


def pair(inputs, num_heads=2, key_dim=4, **arguments):
    """Our layer and that of Keras, of equal random weights."""
    theirs = keras.layers.MultiHeadAttention(num_heads, key_dim, **arguments)
    theirs.build(*(each.shape for each in inputs))
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
        np.testing.assert_allclose(own, other, rtol=1e-5, atol=tolerance)


SHAPES_OF_HEADS = [
    {},
    {"use_bias": False},
    {"value_dim": 3},
    {"use_gate": True},
    {"use_gate": True, "use_bias": False, "value_dim": 3},
    {"output_shape": 7},
    {"output_shape": (2, 1, 3), "use_bias": False, "use_gate": True},
    {"num_heads": 1, "key_dim": 1},
    {"num_heads": 12, "key_dim": 16},
]


@pytest.mark.parametrize(
    ("inputs", "arguments"), cover(list(INPUTS), SHAPES_OF_HEADS), ids=str
)
def test_outputs_and_scores(inputs, arguments):
    inputs = INPUTS[inputs]
    ours, theirs = pair(inputs, **arguments)
    assert_alike(ours, theirs, inputs)
    # On JAX, Keras computes values of another width only with scores.
    expected, _ = theirs(*inputs, return_attention_scores=True)
    np.testing.assert_allclose(ours(*inputs), expected, rtol=1e-5, atol=1e-5)
    assert ours.count_params() == theirs.count_params()
    assert len(ours.trainable_weights) == len(theirs.trainable_weights)
    # Weights may also have the axes of Keras.
    weights = [RANDOM.normal(size=w.shape) for w in theirs.weights]
    theirs.set_weights(weights)
    for given in (weights, ours.get_weights()):
        ours.set_weights(given)
        if given is weights:
            assert_alike(ours, theirs, inputs, tolerance=2e-4)


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


MASKS = [None, (5, 5), (1, 5, 5), (3, 5, 5), (3, 1, 5, 5), (3, 2, 5, 5)]


@pytest.mark.parametrize(
    ("shape", "causal", "window"),
    cover([*map(pytest.param, MASKS)], [False, True], [None, 1, 3, 9]),
    ids=str,
)
def test_masks_and_windows(shape, causal, window):
    (shape,) = shape.values
    mask = None
    if shape is not None:
        mask = (RANDOM.random(shape) < 0.6) | np.eye(5, dtype=bool)
    ours, theirs = pair(SELF, sliding_window=window)
    options = {"attention_mask": mask, "use_causal_mask": causal}
    assert_alike(ours, theirs, SELF, **options)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("cross", [False, True])
def test_masks_of_embeddings_are_heeded_and_passed_on(cross, causal):
    """Compares real queries only: padded queries see no key in Keras."""
    ids = np.array([[1, 2, 3, 0, 0], [3, 3, 1, 1, 2], [1, 0, 0, 0, 0]])
    others = np.array([[1, 2, 3, 3, 1, 0], [3, 3, 1, 1, 2, 0], [1] * 6])
    embedding = keras.layers.Embedding(4, 8, mask_zero=True)
    ours, theirs = pair(SELF, use_gate=True)
    outputs = []
    for layer in (ours, theirs):
        x = embedding(ids)
        value = embedding(others) if cross else x
        outputs.append(layer(x, value, use_causal_mask=causal and not cross))
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


HIGH = {
    "one axis": ((3, 4), (3, 2), 2),
    "two axes": ((3, 4), (3, 2), (1, 2)),
    "last two of three": ((5, 3, 4), (5, 3, 2), (2, 3)),
    "the first": ((4, 3), (2, 3), 1),
    "negative": ((3, 4), (3, 2), -2),
    "all": ((2, 3), (1, 5), None),
    "in another order": ((3, 4), (3, 2), (2, 1)),
}


@pytest.mark.parametrize("case", HIGH)
def test_attention_over_axes(case):
    query_sizes, value_sizes, axes = HIGH[case]
    inputs = [
        RANDOM.normal(size=(3, *sizes, 8)).astype("float32")
        for sizes in (query_sizes, value_sizes)
    ]
    ours, theirs = pair(inputs, attention_axes=axes, use_gate=True, value_dim=3)
    assert_alike(ours, theirs, inputs)
    # Keras takes all masks whose axes are those of scores.
    scores = ours(*inputs, return_attention_scores=True)[1]
    mask = RANDOM.random(scores.shape) < 0.6
    mask |= np.arange(scores.shape[-1]) == 0
    found, expected = (
        layer(*inputs, attention_mask=mask) for layer in (ours, theirs)
    )
    np.testing.assert_allclose(found, expected, atol=1e-5)


SHAPES = [
    ((4, 8), (2, 8), None, None),
    ((4, 8), (2, 8), (2, 3), (1, 5)),
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
    as_lists = [None if each is None else list(each) for each in shapes]
    for given in (shapes, as_lists):
        assert output.shape == layer.compute_output_shape(*given)
    query, value, key = (
        None if each is None else keras.KerasTensor(each) for each in shapes
    )
    spec = layer.compute_output_spec(query, value, key)
    assert spec.shape == output.shape


def test_arguments_have_the_order_of_keras():
    for method, last in (("__init__", -1), ("call", None)):
        theirs, ours = (
            list(inspect.signature(getattr(kind, method)).parameters.values())
            for kind in (keras.layers.MultiHeadAttention, MultiHeadAttention)
        )
        for own, other in zip(ours, theirs[:last], strict=False):
            assert own.name == other.name
            if method == "__init__":
                assert (own.kind, own.default) == (other.kind, other.default)
    ours, _ = pair(SELF)
    mask = np.tri(5, dtype=bool)
    in_order = (None, None, None, None, mask, True, False, False)
    expected = ours(*SELF, attention_mask=mask, return_attention_scores=True)
    for own, other in zip(ours(*SELF, *in_order), expected, strict=True):
        np.testing.assert_array_equal(own, other)
    with pytest.raises(TypeError, match=r"given by name.* got 1 more"):
        ours(*SELF, *in_order, None)


PENALTIES = {
    "kernel_regularizer": "l2",
    "bias_regularizer": "l1",
    "activity_regularizer": keras.regularizers.L1L2(0.1, 0.2),
}


@pytest.mark.parametrize(
    ("name", "axes", "use_gate"), cover([*PENALTIES], [None, 2], [False, True])
)
def test_losses(name, axes, use_gate):
    inputs = SELF
    if axes:
        inputs = (RANDOM.normal(size=(3, 2, 5, 8)).astype("float32"),) * 2
    arguments = {name: PENALTIES[name], "attention_axes": axes}
    ours, theirs = pair(inputs, use_gate=use_gate, **arguments)
    ours(*inputs), theirs(*inputs)
    assert len(ours.losses) == len(theirs.losses) == 4 + use_gate
    found, expected = (sum(layer.losses) for layer in (ours, theirs))
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def make_lora(ranks):
    layer = MultiHeadAttention(3, 8, use_bias=False, use_gate=True)
    inputs = {
        name: keras.Input(each.shape[1:], name=name)
        for name, each in zip("qvk", INPUTS["key"], strict=True)
    }
    model = keras.Model(inputs, layer(*inputs.values()))
    for dense in (layer.query_dense, layer.key_dense, layer.value_dense):
        if ranks:
            dense.enable_lora(ranks)
    return model, layer


def test_lora_is_trained_saved_and_loaded(tmp_path):
    x = dict(zip("qvk", INPUTS["key"], strict=True))
    model, layer = make_lora(2)
    assert len(layer.trainable_variables) == 8
    assert len(layer.non_trainable_variables) == 3
    model.compile("sgd", "mse", run_eagerly=True)
    model.fit(x, QUERY, verbose=0)
    expected = model(x)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(x), expected)
    model.save_weights(tmp_path / "model.weights.h5")
    plain, _ = make_lora(0)
    plain.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_allclose(plain(x), expected, atol=1e-6)


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
    _, theirs = pair(SELF)
    ours = MultiHeadAttention(**{"num_heads": 2, "key_dim": 4, **arguments})
    with pytest.raises(ValueError, match=message):
        ours.load_keras_weights(theirs)


def test_weights_that_do_not_exist_are_refused():
    ours, theirs = pair(SELF)
    weights = theirs.get_weights()
    new = MultiHeadAttention(2, 4)
    for call, message in (
        (
            lambda: new.load_keras_weights(
                keras.layers.MultiHeadAttention(2, 4)
            ),
            "call it once, or build it",
        ),
        (
            lambda: new.load_keras_weights(keras.layers.Dense(2)),
            r"must be a keras.* got a Dense",
        ),
        (
            lambda: ours.set_weights([weights[0].T, *weights[1:]]),
            "not compatible",
        ),
        (lambda: ours.set_weights(weights[1:]), "weight list of length"),
        (lambda: new.set_weights(weights), "expecting 0 weights"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
