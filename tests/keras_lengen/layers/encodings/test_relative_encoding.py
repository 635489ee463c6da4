import math

import numpy as np
import pytest

from keras_lengen.layers import RelativeEncoding
from tests.covering import cover
from tests.keras_lengen.bad_inputs import compiled
from tests.keras_lengen.layers.encodings.table import (
    MODEL_DIM,
    WIDTH,
    make_built,
    random_inputs,
)
from tests.keras_lengen.models.small import with_random_weights

QUERY, KEY = random_inputs("bias")
SHARED = np.array([0, 2, 5, 11, 12, 40])
OWN = np.stack([SHARED, [3, 4, 6, 7, 19, 25]])


@pytest.mark.parametrize("positions", [SHARED, OWN])
@pytest.mark.parametrize("distances", ["positions", "sampled"])
def test_a_program_for_all_lengths(distances, positions):
    encoding = make_built("RelativeEncoding", distances=distances)

    def compute(query, positions):
        return encoding(query, positions=positions)

    arrays = {"query": QUERY, "positions": positions}
    found = compiled(compute, arrays, "graph")(**arrays)
    np.testing.assert_allclose(found, compute(**arrays), atol=1e-5)


def angle_increments(positions, distances):
    """Signed distances from queries to keys, `(T, T)`."""
    if distances == "positions":
        return positions - positions[:, None]
    ranks = np.arange(len(positions))
    steps = ranks - ranks[:, None]
    return np.sign(steps) * (positions[abs(steps)] - positions[0])


def find_bias(encoding, steps):
    """Bias of all heads for steps `(B, T, T)`, by the definition."""
    pairs = np.arange(MODEL_DIM // 2)
    rates = float(encoding.max_wavelength) ** (-2 * pairs / MODEL_DIM)
    angles = steps[..., None] * rates
    sinusoids = np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
    mapped = np.einsum("bijm,mhd->bijhd", sinusoids, encoding.kernel)
    content = np.einsum("bjhd,hd->bhj", KEY, encoding.content_bias)
    query = QUERY + np.asarray(encoding.position_bias)
    position = np.einsum("bihd,bijhd->bhij", query, mapped)
    return (content[:, :, None] + position) / math.sqrt(WIDTH)


@pytest.mark.parametrize(
    ("positions", "max_wavelength", "distances", "by_table"),
    cover([SHARED, OWN], [100, 10000], ["positions", "sampled"], [True, False]),
)
def test_both_ways_follow_the_definition(
    positions, max_wavelength, distances, by_table, monkeypatch
):
    by_table = by_table and positions is SHARED
    encoding = make_built(
        "RelativeEncoding", distances=distances, max_wavelength=max_wavelength
    )
    with_random_weights(encoding)
    monkeypatch.setattr(encoding, "_is_table_cheaper", lambda *args: by_table)
    bias = encoding(QUERY, KEY, positions=positions)
    of_examples = np.broadcast_to(positions, QUERY.shape[:2])
    steps = [angle_increments(example, distances) for example in of_examples]
    expected = find_bias(encoding, np.array(steps))
    np.testing.assert_allclose(bias, expected, rtol=1e-3, atol=1e-3)


def test_an_odd_width_raises():
    inputs = np.ones((1, 2, 3, 5), "float32")
    with pytest.raises(ValueError, match=r"heads together is 15: .* even"):
        RelativeEncoding()(inputs)
