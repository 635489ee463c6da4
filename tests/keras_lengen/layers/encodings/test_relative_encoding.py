import math

import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import RelativeEncoding
from tests.covering import cover
from tests.keras_lengen.layers.encodings.table import (
    BATCH,
    HEADS,
    MODEL_DIM,
    WIDTH,
    make_built,
    random_inputs,
)
from tests.keras_lengen.models.small import with_random_weights

QUERY, KEY = random_inputs("bias")
SHARED = np.array([0, 2, 5, 11, 12, 40])
OWN = np.stack([SHARED, [3, 4, 6, 7, 19, 25]])


def test_a_program_for_all_lengths():
    encoding = make_built("RelativeEncoding")
    shape = tf.TensorSpec((None, None, HEADS, WIDTH))
    program = tf.function(encoding, input_signature=[shape])
    np.testing.assert_allclose(program(QUERY), encoding(QUERY), atol=1e-5)


def sampled(positions, i, j):
    step = positions[abs(j - i)] - positions[0]
    return step if j > i else -step


def of_positions(positions, i, j):
    return positions[j] - positions[i]


def score(encoding, query, key, distance):
    """Bias of all heads for one pair, by the definition."""
    sines, cosines = [], []
    for pair in range(MODEL_DIM // 2):
        angle = distance / encoding.max_wavelength ** (2 * pair / MODEL_DIM)
        sines.append(math.sin(angle))
        cosines.append(math.cos(angle))
    sinusoid = np.array(sines + cosines)
    content, position = encoding.content_bias, encoding.position_bias
    kernel = np.asarray(encoding.kernel)
    scores = []
    for head in range(HEADS):
        mapped = sinusoid @ kernel[:, head]
        scores.append(
            np.dot(content[head], key[head])
            + np.dot(query[head] + np.asarray(position[head]), mapped)
        )
    return np.array(scores) / math.sqrt(WIDTH)


@pytest.mark.parametrize(
    ("positions", "max_wavelength", "distances", "by_table"),
    cover([SHARED, OWN], [100, 10000], ["positions", "sampled"], [True, False]),
)
def test_both_ways_follow_the_definition(
    positions, max_wavelength, distances, by_table, monkeypatch
):
    distance = {"positions": of_positions, "sampled": sampled}[distances]
    by_table = by_table and positions is SHARED
    encoding = make_built(
        "RelativeEncoding", distances=distances, max_wavelength=max_wavelength
    )
    with_random_weights(encoding)
    monkeypatch.setattr(encoding, "_is_table_cheaper", lambda *args: by_table)
    bias = encoding(QUERY, KEY, positions=positions)
    of_examples = np.broadcast_to(positions, QUERY.shape[:2])
    for example, i, j in np.ndindex(BATCH, 6, 6):
        expected = score(
            encoding,
            QUERY[example, i],
            KEY[example, j],
            distance(of_examples[example], i, j),
        )
        np.testing.assert_allclose(
            bias[example, :, i, j], expected, rtol=1e-3, atol=1e-3
        )


def test_an_odd_width_raises():
    inputs = np.ones((1, 2, 3, 5), "float32")
    with pytest.raises(ValueError, match=r"heads together is 15: .* even"):
        RelativeEncoding()(inputs)
