import keras
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_lengen.layers import MultiHeadAttention, XPos
from tests.keras_lengen.layers.encodings.table import random_inputs

QUERY, KEY = random_inputs("rotation")


def test_attention_must_be_causal():
    x = np.ones((1, 4, 16), "float32")
    attention = MultiHeadAttention(2, 8, encoding=XPos())
    with pytest.raises(ValueError, match="XPos is for causal attention"):
        attention(x, x)
    masked = attention(x, x, attention_mask=np.tri(4, dtype=bool))
    np.testing.assert_allclose(attention(x, x, use_causal_mask=True), masked)


@pytest.mark.parametrize(
    ("dtype", "reach"),
    [
        ("float32", 32695),
        ("float64", 32695),
        ("mixed_bfloat16", 32695),
        ("float16", 3269),
    ],
)
def test_features_up_to_the_largest_positions(dtype, reach):
    # The fastest pair fades by 0.4 / 1.4 in 512 tokens: 512 * 80 / log(3.5)
    # tokens for a factor of exp(80), and 512 * 8 / log(3.5) for exp(8).
    encoding = XPos(dtype=dtype)
    positions = np.array([-reach, -reach // 3, 0, 1, reach - 1, reach])
    pair = np.arange(4)
    zeta = (2 * pair + 0.4 * 8) / (1.4 * 8)
    turns = np.exp(1j * np.outer(positions, 10000.0 ** (-pair / 4)))
    growth = zeta ** (positions[:, None] / 512)
    # Half an epsilon of float32 for each of two roundings of an angle, and
    # some roundings of the features.
    eps = ml_dtypes.finfo(encoding.compute_dtype).eps
    tolerance = reach * 2.0**-23 + 4 * max(float(eps), 2.0**-23)
    for features, factor, found in zip(
        (QUERY, KEY),
        (turns * growth, turns / growth),
        encoding(QUERY, KEY, positions=positions),
        strict=True,
    ):
        assert keras.backend.standardize_dtype(found.dtype) == (
            encoding.compute_dtype
        )
        found = np.asarray(ops.cast(found, "float64"))
        assert np.isfinite(found).all()
        found = found[..., 0::2] + 1j * found[..., 1::2]
        expected = features[..., 0::2] + 1j * features[..., 1::2]
        expected = expected * factor[:, None]
        assert (abs(found - expected) <= tolerance * abs(expected)).all()


@pytest.mark.parametrize(
    ("dtype", "reach", "sign"),
    [
        ("float32", 32695, 1),
        ("mixed_bfloat16", 32695, -1),
        ("float16", 3269, -1),
    ],
)
def test_larger_positions_are_refused(dtype, reach, sign):
    encoding = XPos(dtype=dtype)
    largest = sign * reach * np.ones((2, 6), "int32")
    beyond = largest + np.array([[0], [sign]], "int32")
    message = (
        rf"positions reach .*{reach + 1}.*{encoding.compute_dtype} features "
        rf"finite up to {reach}: raise scale_base"
    )

    def encoded(positions):
        return encoding(QUERY, KEY, positions=positions)

    assert_finite(encoded(largest))
    with pytest.raises(ValueError, match=message):
        encoded(beyond)
    graph = tf.function(encoded)
    assert_finite(graph(tf.constant(largest)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="positions reach"):
        graph(tf.constant(beyond))
    # No assertion ends a program of XLA.
    compiled = tf.function(encoded, jit_compile=True)
    assert_finite(compiled(tf.constant(largest)))
    for features in compiled(tf.constant(beyond)):
        assert_finite(features[:1])
        assert np.isnan(ops.cast(features[1:], "float32")).all()


def assert_finite(tensors):
    for tensor in tf.nest.flatten(tensors):
        assert np.isfinite(ops.cast(tensor, "float32")).all()
