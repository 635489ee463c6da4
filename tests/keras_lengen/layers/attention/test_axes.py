"""Attention over some axes of inputs with more than three.

Runs on TensorFlow, and on JAX by `tests/keras_lengen/test_backends.py`.
"""

import keras
import numpy as np
import pytest
from keras import ops

from keras_lengen.layers import (
    ForgettingAttention,
    MultiHeadAttention,
    RoPE,
)
from tests.keras_lengen.layers.attention.subjects import FEATURES, copy
from tests.keras_lengen.layers.encodings.table import make_axial
from tests.refusals import refuses

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(2, 3, 4, FEATURES)).astype("float32")
OTHER = RANDOM.normal(size=(2, 3, 5, FEATURES)).astype("float32")
FLAT = ops.reshape(X, (2, 12, FEATURES))
ROWS = ops.reshape(X, (6, 4, FEATURES))
WEIGHTS = {"return_attention_scores": True}


def attention(axes, kind=MultiHeadAttention, width=4, **kwargs):
    keras.utils.set_random_seed(0)
    return kind(2, width, attention_axes=axes, **kwargs)


def over_tokens(layer):
    """The same layer for inputs with three axes."""
    if not layer.built:
        layer.build(X.shape, X.shape)
    return copy(layer, attention_axes=None)


def rows_of(x):
    """The rows of each example, as examples of their own."""
    return ops.reshape(x, (-1, *x.shape[2:]))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (MultiHeadAttention, {"encoding": RoPE(), "use_gate": True}),
        (ForgettingAttention, {}),
    ],
)
def test_rows_attend_to_themselves(kind, options):
    layer = attention(2, kind, **options)
    output, weights = layer(X, X, use_causal_mask=True, **WEIGHTS)
    expected, of_rows = over_tokens(layer)(
        ROWS, ROWS, use_causal_mask=True, **WEIGHTS
    )
    np.testing.assert_allclose(rows_of(output), expected, atol=1e-6)
    assert weights.shape == (2, 3, 2, 4, 4)
    np.testing.assert_allclose(rows_of(weights), of_rows, atol=1e-6)


PLACES = np.sort(RANDOM.choice(64, 12, replace=False))
ALL = [
    ((1, 2), 4, {"encoding": RoPE()}, PLACES),
    (None, 8, {"encoding": make_axial(RoPE)}, None),
    ((1, 2), 4, {"sliding_window": 3, "chunk_size": 5}, None),
]


@pytest.mark.parametrize(("axes", "width", "options", "positions"), ALL)
def test_all_tokens_attend_to_each_other(axes, width, options, positions):
    """Positions are those of the tokens row by row."""
    layer = attention(axes, width=width, **options)
    call = {"positions": positions, "use_causal_mask": positions is not None}
    expected = over_tokens(layer)(FLAT, FLAT, **call)
    found = layer(X, X, **call)
    np.testing.assert_array_equal(ops.reshape(found, FLAT.shape), expected)


def test_padding_is_that_of_the_tokens():
    layer = attention(2, encoding=RoPE())
    mask = RANDOM.random((2, 3, 4)) < 0.7
    mask[..., 0] = True
    of_rows = mask.reshape(6, 4)
    expected = over_tokens(layer)(ROWS, ROWS, value_mask=of_rows)
    np.testing.assert_array_equal(
        rows_of(layer(X, X, value_mask=mask)), expected
    )
    masked = keras.layers.Masking(-9)(np.where(mask[..., None], X, -9))
    np.testing.assert_array_equal(layer(masked, masked)._keras_mask, mask)


def test_sizes_of_axes_may_be_unknown():
    query, value = (keras.Input((size, 4, 8)) for size in (3, None))
    assert attention(2)(query, value, query).shape == (None, 3, 4, 8)


@refuses(
    (0, X, "attention_axes must be different axes from 1 to 2"),
    ((1, 1), X, r"got \(1, 1\)"),
    (2, X[:, 0], "from 1 to 1 of inputs with 3 axes"),
)
def test_wrong_axes_raise(axes, x):
    attention(axes)(x, x)


@refuses(
    ((X, X[:, 0]), {}, r"value must have shape of 4 axes, as query"),
    ((X, X[:, :2]), {}, "equal sizes of axis 1, .* got 3 and 2"),
    ((X, X, OTHER), {}, "all axes of key and value but .* be equal"),
    ((X, X), {"length": 4}, "length needs inputs with three axes"),
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
)
def test_wrong_inputs_raise(inputs, arguments):
    attention(2, encoding=RoPE())(*inputs, **arguments)
