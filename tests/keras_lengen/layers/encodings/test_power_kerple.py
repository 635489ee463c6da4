import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import PowerKERPLE
from tests.keras_lengen.layers.encodings.table import random_inputs

QUERY, KEY = random_inputs("bias")
RANDOM = np.random.default_rng(1)
A, P = np.array([0.5, 2.0]), np.array([1.5, 0.25])


def trained():
    encoding = PowerKERPLE()
    encoding.build(QUERY.shape)
    encoding.set_weights([A.astype("float32"), P.astype("float32")])
    return encoding


def test_published_values():
    query = np.ones((1, 5, 2, 8), "float32")
    np.testing.assert_allclose(
        trained()(query)[0, 0, 0],
        [0, -0.5, -1.414214, -2.598076, -4],
        rtol=1e-6,
    )


@pytest.mark.parametrize("shape", [(6,), (2, 6)])
@pytest.mark.parametrize("causal", [False, True])
def test_definition(shape, causal):
    positions = RANDOM.uniform(0, 2000, shape).round(1).astype("float32")
    bias = trained()(QUERY, KEY, positions=positions, causal=causal)
    positions = positions.astype("float64")
    distances = abs(positions[..., None] - positions[..., None, :])
    powers = distances[..., None, :, :] ** P[:, None, None]
    expected = np.broadcast_to(-A[:, None, None] * powers, (2, 2, 6, 6))
    assert bias.shape == (1 if len(shape) == 1 else 2, 2, 6, 6)
    np.testing.assert_allclose(
        np.broadcast_to(bias, expected.shape), expected, rtol=1e-4
    )


def test_gradients_where_tokens_share_a_position():
    encoding = trained()
    positions = tf.constant([3.0, 3, 3, 3, 3, 7])
    with tf.GradientTape() as tape:
        tape.watch(positions)
        total = tf.reduce_sum(encoding(QUERY, KEY, positions=positions))
    # Of the 36 pairs 10 are 4 apart.
    slope = 2 * np.sum(A * P * 4 ** (P - 1))
    for gradient, expected in zip(
        tape.gradient(total, [encoding.a.value, encoding.p.value, positions]),
        [
            -10 * 4**P,
            -10 * A * 4**P * np.log(4),
            [*[slope] * 5, -5 * slope],
        ],
        strict=True,
    ):
        np.testing.assert_allclose(gradient, expected, rtol=1e-5)
