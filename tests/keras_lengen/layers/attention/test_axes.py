"""Attention over some axes of inputs with more than three."""

import functools

import keras
import numpy as np
import pytest
from keras import ops

from keras_lengen.layers import (
    ALiBi,
    AxialEncoding,
    ForgettingAttention,
    GridPositions,
    MultiHeadAttention,
    RandomizedRoPE,
    RoPE,
)
from tests.keras_lengen.layers.arguments import assert_config_round_trip

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(2, 3, 4, 8)).astype("float32")
OTHER = RANDOM.normal(size=(2, 3, 5, 8)).astype("float32")


def attention(axes, **kwargs):
    keras.utils.set_random_seed(0)
    return MultiHeadAttention(2, 4, attention_axes=axes, **kwargs)


def over_tokens(layer):
    """The same layer for inputs with three axes."""
    config = {**layer.get_config(), "attention_axes": None}
    again = type(layer).from_config(config)
    again.build((None, None, 8), (None, None, 8))
    if not layer.built:
        layer.build((None, None, None, 8), (None, None, None, 8))
    again.set_weights(layer.get_weights())
    return again


def rows_of(x):
    """The rows of each example, as examples of their own."""
    return ops.reshape(x, (-1, *x.shape[2:]))


def test_rows_attend_to_themselves():
    layer = attention(2, encoding=RoPE(), use_gate=True)
    output, weights = layer(
        X, X, use_causal_mask=True, return_attention_scores=True
    )
    rows = rows_of(X)
    expected, of_rows = over_tokens(layer)(
        rows, rows, use_causal_mask=True, return_attention_scores=True
    )
    np.testing.assert_array_equal(rows_of(output), expected)
    assert weights.shape == (2, 3, 2, 4, 4)
    np.testing.assert_array_equal(rows_of(weights), of_rows)


def test_columns_attend_to_themselves():
    layer = attention(1, encoding=ALiBi())
    turned = np.swapaxes(X, 1, 2)
    rows = rows_of(turned)
    expected = ops.reshape(over_tokens(layer)(rows, rows), turned.shape)
    np.testing.assert_array_equal(layer(X, X), np.swapaxes(expected, 1, 2))


@pytest.mark.parametrize("axes", [None, (1, 2), [-3, -2]], ids=str)
def test_all_tokens_attend_to_each_other(axes):
    """Positions are those of the tokens row by row."""
    layer = attention(axes, encoding=RandomizedRoPE(max_position=64))
    positions = np.sort(RANDOM.choice(64, 12, replace=False))
    flat = ops.reshape(X, (2, 12, 8))
    expected = over_tokens(layer)(
        flat, flat, positions=positions, use_causal_mask=True
    )
    found = layer(X, X, positions=positions, use_causal_mask=True)
    np.testing.assert_array_equal(ops.reshape(found, (2, 12, 8)), expected)


def test_the_order_of_axes_is_that_of_the_tokens():
    layer = attention((2, 1), encoding=RoPE())
    turned = ops.reshape(np.swapaxes(X, 1, 2), (2, 12, 8))
    expected, of_flat = over_tokens(layer)(
        turned, turned, return_attention_scores=True
    )
    output, weights = layer(X, X, return_attention_scores=True)
    found = ops.reshape(np.swapaxes(output, 1, 2), (2, 12, 8))
    np.testing.assert_array_equal(found, expected)
    assert weights.shape == (2, 2, 4, 3, 4, 3)
    np.testing.assert_array_equal(ops.reshape(weights, of_flat.shape), of_flat)


def test_positions_of_each_example_are_those_of_its_rows():
    layer = attention(2, encoding=RoPE())
    positions = np.array([[0, 2, 3, 9], [5, 6, 20, 21]])
    rows = rows_of(X)
    expected = over_tokens(layer)(
        rows, rows, positions=np.repeat(positions, 3, axis=0)
    )
    np.testing.assert_array_equal(
        rows_of(layer(X, X, positions=positions)), expected
    )


def test_a_grid_has_the_positions_of_its_rows_and_columns():
    sampler = GridPositions(width=4)
    encoding = AxialEncoding(row=RoPE(), column=RoPE(), sampler=sampler)
    layer = MultiHeadAttention(2, 8, encoding=encoding)
    flat = ops.reshape(X, (2, 12, 8))
    np.testing.assert_array_equal(
        ops.reshape(layer(X, X), (2, 12, 8)), over_tokens(layer)(flat, flat)
    )


def test_padding_is_that_of_the_tokens():
    layer = attention(2, encoding=RoPE())
    mask = RANDOM.random((2, 3, 4)) < 0.7
    mask[..., 0] = True
    rows = rows_of(X)
    expected = over_tokens(layer)(rows, rows, value_mask=mask.reshape(6, 4))
    np.testing.assert_array_equal(
        rows_of(layer(X, X, value_mask=mask)), expected
    )
    masked = keras.layers.Masking(-9)(np.where(mask[..., None], X, -9))
    output = layer(masked, masked)
    np.testing.assert_array_equal(output._keras_mask, mask)
    of_rows = mask.reshape(6, 4)
    expected = over_tokens(layer)(
        rows, rows, query_mask=of_rows, value_mask=of_rows
    )
    real = rows_of(np.where(mask[..., None], output, 0))
    np.testing.assert_allclose(
        real, np.where(mask.reshape(6, 4, 1), expected, 0), atol=1e-6
    )


@pytest.mark.parametrize(
    "shape",
    [
        (4, 5),
        (2, 4, 5),
        (1, 4, 5),
        (2, 3, 4, 5),
        (2, 1, 4, 5),
        (2, 3, 2, 4, 5),
        (1, 1, 2, 4, 5),
    ],
    ids=str,
)
def test_attention_masks(shape):
    """Axes are those of the batch, others and heads, as in Keras."""
    mask = RANDOM.random(shape) < 0.6
    mask[..., 0] = True
    theirs = keras.layers.MultiHeadAttention(2, 4, attention_axes=2)
    expected = theirs(X, OTHER, attention_mask=mask)
    ours = attention(2)
    ours.load_keras_weights(theirs)
    output, weights = ours(
        X, OTHER, attention_mask=mask, return_attention_scores=True
    )
    np.testing.assert_allclose(output, expected, atol=1e-5)
    full = mask.reshape(*shape[:-2], *[1] * (5 - len(shape)), *shape[-2:])
    hidden = ~np.broadcast_to(full, weights.shape)
    assert np.all(np.asarray(weights)[hidden] == 0)


def test_another_rule_of_weights_folds_axes_too():
    layer = ForgettingAttention(2, 4, attention_axes=2, use_gate=True)
    rows = rows_of(X)
    expected = over_tokens(layer)(rows, rows, use_causal_mask=True)
    np.testing.assert_allclose(
        rows_of(layer(X, X, use_causal_mask=True)), expected, atol=1e-6
    )


def test_chunks_and_windows_change_nothing():
    layer = attention((1, 2), sliding_window=3, chunk_size=5)
    flat = ops.reshape(X, (2, 12, 8))
    np.testing.assert_array_equal(
        ops.reshape(layer(X, X), (2, 12, 8)), over_tokens(layer)(flat, flat)
    )


def compiled_by_jax(call):
    import jax

    return jax.jit(call)


def compiled_by_tensorflow(call, jit_compile=True):
    import tensorflow as tf

    return tf.function(
        call,
        jit_compile=jit_compile,
        input_signature=[
            tf.TensorSpec((None, None, None, 8)),
            tf.TensorSpec((None, None, None), "bool"),
        ],
    )


COMPILERS = {
    "tensorflow": [
        compiled_by_tensorflow,
        functools.partial(compiled_by_tensorflow, jit_compile=False),
    ],
    "jax": [compiled_by_jax],
}


@pytest.mark.parametrize("compiled", COMPILERS[keras.backend.backend()])
def test_compiled_it_is_the_same(compiled):
    """With TensorFlow, sizes are unknown when it is traced."""
    layer = attention(2, encoding=RoPE(), output_shape=(2, 3))
    mask = RANDOM.random((2, 4, 4)) < 0.8
    mask[..., 0] = True
    expected = layer(X, X, attention_mask=mask)
    call = compiled(lambda x, mask: layer(x, x, attention_mask=mask))
    found = call(X, mask)
    assert found.shape == (2, 3, 4, 2, 3)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_model_of_symbolic_inputs_is_the_layer():
    layer = attention(2, encoding=RoPE())
    x = keras.Input((3, None, 8))
    output, weights = layer(x, x, return_attention_scores=True)
    assert output.shape == (None, 3, None, 8)
    assert weights.shape == (None, 3, 2, None, None)
    model = keras.Model(x, output)
    np.testing.assert_allclose(model(X), layer(X, X), atol=1e-6)


def test_config_rebuilds_it_after_build():
    layer = attention((-2,))
    layer(X, X)
    assert_config_round_trip(layer)
    assert layer.get_config()["attention_axes"] == (-2,)


@pytest.mark.parametrize(
    ("axes", "x", "message"),
    [
        (0, X, "attention_axes must be different axes from 1 to 2"),
        (-1, X, "attention_axes must be different .* got -1"),
        ((1, 1), X, r"got \(1, 1\)"),
        (3, X, "got 3"),
        (2, X[:, 0], "from 1 to 1 of inputs with 3 axes"),
    ],
    ids=str,
)
def test_wrong_axes_raise(axes, x, message):
    with pytest.raises(ValueError, match=message):
        attention(axes)(x, x)


@pytest.mark.parametrize(
    ("inputs", "arguments", "message"),
    [
        ((X, X[:, 0]), {}, r"value must have shape of 4 axes, as query has"),
        ((X, X[:, :2]), {}, "equal sizes of axis 1, .* got 3 and 2"),
        ((X, X, OTHER), {}, "all axes of key and value but .* must be equal"),
        ((X, X), {"length": 4}, "length needs inputs with three axes"),
        ((X, X), {"cache": (X, X)}, "cache needs inputs with three axes"),
        (
            (X, X),
            {"value_mask": np.ones((2, 3), bool)},
            "value_mask must have shape of the value without its last axis",
        ),
        (
            (X, X),
            {"attention_mask": np.ones((3, 4, 4), bool)},
            r"attention_mask must have shape \(2, 3, 2, 4, 4\), or without",
        ),
        ((X, X), {"positions": np.arange(5)}, "got 5 for 4 tokens"),
    ],
    ids=[
        *("rank", "others", "key", "length", "cache"),
        *("value_mask", "attention_mask", "positions"),
    ],
)
def test_wrong_inputs_raise(inputs, arguments, message):
    with pytest.raises(ValueError, match=message):
        attention(2, encoding=RoPE())(*inputs, **arguments)
