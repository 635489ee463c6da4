"""Attention without an encoding is that of Keras, with loaded weights."""

import inspect

import keras
import numpy as np
import pytest

from keras_lengen.layers import MultiHeadAttention, TransformerBlock
from tests.refusals import refuses

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
    kind = keras.layers.MultiHeadAttention
    # Such as `sliding_window`, which is new in 3.15.
    newer = arguments.keys() - inspect.signature(kind).parameters
    if newer:
        pytest.skip(f"Keras {keras.__version__} has no {newer.pop()}")
    theirs = kind(num_heads, key_dim, **arguments)
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


@pytest.mark.parametrize(
    ("inputs", "arguments", "causal"),
    [
        ("self", {"num_heads": 12, "key_dim": 16}, True),
        ("self", {"use_bias": False}, False),
        ("self", {"sliding_window": 3}, False),
        ("self", {"sliding_window": 3}, True),
        ("cross", {"use_gate": True, "value_dim": 3}, False),
        ("key", {"output_shape": (2, 1, 3), "use_gate": True}, False),
    ],
)
def test_outputs_and_scores(inputs, arguments, causal):
    inputs = INPUTS[inputs]
    ours, theirs = pair(inputs, **arguments)
    assert_alike(ours, theirs, inputs, use_causal_mask=causal)
    # Weights may also have the axes of Keras.
    weights = [RANDOM.normal(size=w.shape) for w in theirs.weights]
    theirs.set_weights(weights)
    ours.set_weights(weights)
    assert_alike(ours, theirs, inputs, tolerance=2e-4)


@pytest.mark.parametrize("cross", [False, True])
def test_masks_of_embeddings_are_heeded_and_passed_on(cross):
    """Compares real queries only: padded queries see no key in Keras."""
    ids = np.array([[1, 2, 3, 0, 0], [3, 3, 1, 1, 2], [1, 0, 0, 0, 0]])
    others = np.array([[1, 2, 3, 3, 1, 0], [3, 3, 1, 1, 2, 0], [1] * 6])
    embedding = keras.layers.Embedding(4, 8, mask_zero=True)
    ours, theirs = pair(SELF, use_gate=True)
    outputs = []
    for layer in (ours, theirs):
        x = embedding(ids)
        value = embedding(others) if cross else x
        outputs.append(layer(x, value, use_causal_mask=not cross))
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
    "last two of three": ((5, 3, 4), (5, 3, 2), (2, 3)),
    "the first": ((4, 3), (2, 3), 1),
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
    shape = tuple(ours(*inputs, return_attention_scores=True)[1].shape)
    # Masks may lack axes of heads, of others and of the batch.
    before = 2 * inputs[0].ndim - len(shape)
    leading = [shape[:count] for count in range(before + 1)]
    for sizes in (*leading, (1,) * before):
        mask = RANDOM.random((*sizes, *shape[before:])) < 0.6
        mask |= np.arange(shape[-1]) == 0
        found, expected = (
            layer(*inputs, attention_mask=mask) for layer in (ours, theirs)
        )
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_computed_shape_is_that_of_the_output():
    shapes = [(7, 4, 2, 3, 8), (7, 1, 1, 5, 8), (7, 1, 1, 5, 2)]
    layer = MultiHeadAttention(2, 2, 2, output_shape=(3, 2))
    output = layer(*map(np.ones, shapes))
    assert output.shape == (7, 4, 2, 3, 3, 2)
    assert output.shape == layer.compute_output_shape(*shapes)
    spec = layer.compute_output_spec(*map(keras.KerasTensor, shapes))
    assert spec.shape == output.shape


def test_arguments_have_the_order_of_keras():
    kinds = keras.layers.MultiHeadAttention, MultiHeadAttention
    for name in ("constructor", "call"):
        theirs, ours = (
            [*inspect.signature(getattr(kind, name, kind)).parameters.values()]
            for kind in kinds
        )
        # Keras before 3.15 lacks some.
        names = [other.name for other in theirs]
        ours = [own for own in ours if own.name in names]
        for own, other in zip(ours, theirs, strict=True):
            assert own.name == other.name
            if name == "constructor":
                assert (own.kind, own.default) == (other.kind, other.default)
    ours, _ = pair(SELF)
    mask = np.tri(5, dtype=bool)
    in_order = (None, None, None, None, mask, True, False, False)
    expected = ours(*SELF, attention_mask=mask, return_attention_scores=True)
    for own, other in zip(ours(*SELF, *in_order), expected, strict=True):
        np.testing.assert_array_equal(own, other)
    with pytest.raises(TypeError, match=r"given by name.* got 1 more"):
        ours(*SELF, *in_order, None)


@pytest.mark.parametrize(
    ("name", "penalty", "axes"),
    [
        ("kernel_regularizer", "l2", None),
        ("bias_regularizer", "l1", None),
        ("activity_regularizer", "l1", 2),
    ],
)
def test_losses(name, penalty, axes):
    inputs = SELF
    if axes:
        inputs = (RANDOM.normal(size=(3, 2, 5, 8)).astype("float32"),) * 2
    arguments = {name: penalty, "attention_axes": axes}
    ours, theirs = pair(inputs, use_gate=True, **arguments)
    ours(*inputs), theirs(*inputs)
    assert len(ours.losses) == len(theirs.losses) == 5
    found, expected = (sum(layer.losses) for layer in (ours, theirs))
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@refuses(
    ({"key_dim": 8}, r"kernel of the query .* \(8, 2, 8\); .* \(8, 2, 4\)"),
    ({"use_bias": False}, "has no bias of the query .* same use_bias"),
    ({"use_gate": True}, "use_gate=True is not that"),
)
def test_weights_of_other_shapes_are_refused(arguments):
    _, theirs = pair(SELF)
    ours = MultiHeadAttention(**{"num_heads": 2, "key_dim": 4, **arguments})
    ours.load_keras_weights(theirs)


def test_weights_that_do_not_exist_are_refused():
    _, theirs = pair(SELF)
    empty = keras.layers.MultiHeadAttention(2, 4)
    new = MultiHeadAttention(2, 4)
    for call, message in (
        (lambda: new.load_keras_weights(empty), "call it once, or build it"),
        (
            lambda: new.load_keras_weights(keras.layers.Dense(2)),
            r"must be a keras.* got a Dense",
        ),
        (lambda: new.set_weights(theirs.get_weights()), "expecting 0 weights"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_a_cache_is_that_of_keras_hub():
    layers = pytest.importorskip("keras_hub.layers")
    theirs = layers.CachedMultiHeadAttention(2, 4)
    empty = np.zeros((3, 2, 5, 2, 4), "float32")
    mask = np.tri(5, dtype=bool)
    arguments = {"attention_mask": mask, "cache_update_index": 0}
    output, cache = theirs(*SELF, cache=empty, **arguments)
    ours = MultiHeadAttention(2, 4)
    ours.load_keras_weights(theirs)
    found, own = ours(*SELF, cache=ours.make_cache(3, 5), **arguments)
    np.testing.assert_allclose(found, output, atol=1e-5)
    np.testing.assert_allclose(
        np.stack([*own.values()], axis=1), cache, atol=1e-5
    )
    # The cache alone, which is not changed.
    query, mask = QUERY[:, :2], mask[1:3]
    output, _ = theirs(query, query, cache=cache, attention_mask=mask)
    found, _ = ours(query, query, cache=own, attention_mask=mask)
    np.testing.assert_allclose(found, output, atol=1e-5)


@pytest.mark.parametrize("with_cache", [False, True])
def test_scores_of_a_block(with_cache):
    block = TransformerBlock(2, cross_attention=True, use_causal_mask=True)
    block.build(QUERY.shape, VALUE.shape)
    arguments = {"memory": VALUE}
    if with_cache:
        cache = block.make_cache(3, 5, VALUE)
        arguments |= {"cache": cache, "cache_update_index": 0}
    output = block(QUERY, **arguments)
    found = block(QUERY, return_attention_scores=True, **arguments)
    _, scores = block.attention_layer(
        *SELF, use_causal_mask=True, return_attention_scores=True
    )
    np.testing.assert_allclose(found[1], scores, atol=1e-5)
    output = output[0] if with_cache else output
    np.testing.assert_allclose(found[0], output, atol=1e-5)
