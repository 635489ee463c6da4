"""Layer normalization equals that of Keras, and so do its gradients."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers.layer_normalization import LayerNormalization
from tests.keras_lengen.layers.attention.test_weighted_sums import differentiate

INPUTS = np.random.default_rng(0).normal(2, 3, (3, 4, 6)).astype("float32")


def make(cls, **arguments):
    layer = cls(epsilon=1e-5, **arguments)
    layer.build(INPUTS.shape)
    layer.gamma.assign(np.linspace(0.5, 2, 6))
    layer.beta.assign(np.linspace(-1, 1, 6))
    return layer


@pytest.mark.parametrize("compiled", [None, False, True])
def test_values_and_gradients_are_those_of_keras(compiled):
    results = []
    for cls in (LayerNormalization, keras.layers.LayerNormalization):
        layer = make(cls)

        def function(inputs, layer=layer):
            weights = (layer.gamma.value, layer.beta.value)
            # The sine of three times the result is differentiated.
            return differentiate(
                lambda inputs, *_: [layer(inputs, training=True) / 3],
                (inputs, *weights),
            )

        if compiled is not None:
            function = tf.function(function, jit_compile=compiled)
        results.append(function(tf.constant(INPUTS)))
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "float16"])
def test_half_precision_is_that_of_keras(policy):
    found, expected = (
        make(cls, dtype=policy)(INPUTS, training=True)
        for cls in (LayerNormalization, keras.layers.LayerNormalization)
    )
    assert found.dtype == expected.dtype
    found, expected = (np.array(each, "float32") for each in (found, expected))
    np.testing.assert_allclose(found, expected, rtol=0.01, atol=0.01)
