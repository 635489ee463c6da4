"""Angles are exact at all positions.

Runs on TensorFlow, and on the other backends by
`tests/keras_lengen/test_backends.py`.
"""

import keras
import numpy as np
import pytest
from keras import ops

from keras_lengen.layers.encodings.angles import compute_angles
from tests.keras_lengen.bad_inputs import HOWS, compiled

RATES = 10000.0 ** (-np.arange(16) / 16)
FARTHEST = 2**24

GENERATOR = np.random.default_rng(0)
WHOLE = GENERATOR.integers(-FARTHEST, FARTHEST, 1000).astype("int32")
WHOLE = np.concatenate([WHOLE, [FARTHEST, -FARTHEST, 2047, 2048, 4096, 0]])
FRACTIONS = np.concatenate(
    [GENERATOR.uniform(-size, size, 500) for size in (1, 2**12, FARTHEST)]
).astype("float32")


def run(function, how, **arrays):
    tensors = keras.tree.map_structure(ops.convert_to_tensor, arrays)
    found = compiled(function, arrays, how)(**tensors)
    return ops.convert_to_numpy(found)


every_way = pytest.mark.parametrize("how", HOWS)


def on_circle(angles):
    return np.exp(1j * np.asarray(angles, "float64"))


@every_way
@pytest.mark.parametrize("positions", [WHOLE.astype("int32"), FRACTIONS])
def test_an_angle_is_that_of_double_precision(positions, how):
    found = run(
        lambda positions: compute_angles(positions, RATES),
        how,
        positions=positions,
    )
    expected = positions.astype("float64")[:, None] * RATES
    np.testing.assert_allclose(on_circle(found), on_circle(expected), atol=2e-6)


def test_a_small_angle_is_as_exact_as_a_product():
    positions = np.arange(9, dtype="int32")
    found = compute_angles(ops.convert_to_tensor(positions), RATES / 1000)
    np.testing.assert_allclose(
        ops.convert_to_numpy(found),
        positions[:, None] * RATES / 1000,
        rtol=3e-7,
    )


@every_way
def test_differences_are_exact_if_rates_are_tensors(how):
    def turn_by_forty(positions, scales):
        rates = ops.convert_to_tensor(RATES, "float32") / scales
        return compute_angles(positions + 40, rates) - compute_angles(
            positions, rates
        )

    scales = np.array([[[1.0]], [[3.0]]], "float32")
    positions = np.stack([np.abs(WHOLE), WHOLE // 7]).astype("int32") - 40
    found = run(turn_by_forty, how, positions=positions, scales=scales)
    np.testing.assert_allclose(
        on_circle(found),
        np.broadcast_to(on_circle(40 * RATES / scales), found.shape),
        atol=1e-5,
    )
