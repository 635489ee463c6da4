import math

import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import ShawEncoding
from tests.keras_lengen.layers.encodings.table import (
    BATCH,
    WIDTH,
    make_built,
    random_inputs,
)
from tests.keras_lengen.models.small import added_parameters

QUERY, KEY = random_inputs("bias")
SHARED = np.array([0, 1, 3, 4, 19, 20])
OWN = np.stack([SHARED, [5, 50, 51, 2, 3, 70]])


@pytest.mark.parametrize("positions", [SHARED, OWN], ids=["shared", "own"])
@pytest.mark.parametrize("max_distance", [0, 2, 16])
@pytest.mark.parametrize("causal", [False, True])
def test_definition(positions, max_distance, causal):
    encoding = make_built("ShawEncoding", max_distance=max_distance)
    table = np.asarray(encoding.table)
    assert table.shape == (2 * max_distance + 1, WIDTH)
    bias = encoding(QUERY, KEY, positions=positions, causal=causal)
    assert bias.shape == (BATCH, 2, 6, 6)
    of_examples = np.broadcast_to(positions, QUERY.shape[:2])
    for example, head, i, j in np.ndindex(*bias.shape):
        step = of_examples[example, j] - of_examples[example, i]
        step = min(max(step, -max_distance), max_distance)
        vector = table[step + max_distance]
        expected = np.dot(QUERY[example, i, head], vector) / math.sqrt(WIDTH)
        np.testing.assert_allclose(
            bias[example, head, i, j], expected, atol=1e-5
        )


def test_fractional_distances_are_rounded():
    encoding = make_built("ShawEncoding", max_distance=8)
    near = SHARED + np.array([0, 0.25, -0.25, 0, 0.25, 0])
    np.testing.assert_array_equal(
        encoding(QUERY, KEY, positions=near),
        encoding(QUERY, KEY, positions=SHARED),
    )


def test_gradients():
    encoding = make_built("ShawEncoding", max_distance=1)
    query = tf.constant(QUERY)
    with tf.GradientTape() as tape:
        tape.watch(query)
        bias = encoding(query, KEY, positions=SHARED)
        total = tf.reduce_sum(bias)
    gradients = tape.gradient(total, [query, encoding.table.value])
    table, tokens = np.asarray(encoding.table), np.arange(6)
    # Keys behind, at and ahead of every token.
    counts = np.stack([tokens, np.ones(6), 5 - tokens], axis=-1)
    expected = np.broadcast_to((counts @ table)[:, None], (2, 6, 2, WIDTH))
    scale = 1 / math.sqrt(WIDTH)
    np.testing.assert_allclose(gradients[0], scale * expected, atol=1e-5)
    expected = np.einsum("bthd,tr->rd", QUERY, counts)
    np.testing.assert_allclose(gradients[1], scale * expected, atol=1e-4)


@pytest.mark.parametrize(("share_layers", "copies"), [(True, 1), (False, 3)])
def test_layers_share_the_vectors_or_own_them(share_layers, copies):
    encoding = ShawEncoding(share_layers=share_layers)
    # Four heads of width 4.
    added = added_parameters(encoding, num_heads=4, num_layers=3)
    assert added == 33 * 4 * copies


def test_a_negative_distance_raises():
    with pytest.raises(ValueError, match=r"max_distance .* got -1"):
        ShawEncoding(max_distance=-1)
