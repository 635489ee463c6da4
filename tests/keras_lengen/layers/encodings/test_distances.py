import numpy as np
import pytest
from keras import ops

from keras_lengen.layers.encodings.distances import (
    _find_ranks,
    find_signed_distances,
)

POSITIONS = np.array([0, 2, 5, 11])
OF_POSITIONS = [[0, 2, 5, 11], [-2, 0, 3, 9], [-5, -3, 0, 6], [-11, -9, -6, 0]]
SAMPLED = [[0, 2, 5, 11], [-2, 0, 2, 5], [-5, -2, 0, 2], [-11, -5, -2, 0]]

every_kind = pytest.mark.parametrize(
    ("distances", "expected"),
    [("positions", OF_POSITIONS), ("sampled", SAMPLED)],
)


@every_kind
@pytest.mark.parametrize("own", ["queries", "keys", "both"])
def test_each_example_has_its_own(distances, expected, own):
    batch = np.stack([POSITIONS, 3 * POSITIONS])
    queries, keys = {
        "queries": (batch[:1], POSITIONS),
        "keys": (POSITIONS, batch[:1]),
        "both": (batch, batch),
    }[own]
    steps = find_signed_distances(queries, keys, distances)
    for scale, example in zip((1, 3), steps, strict=False):
        np.testing.assert_array_equal(example, scale * np.array(expected))


@every_kind
def test_one_repeated_last_position_is_padding(distances, expected):
    padded = np.array([0, 2, 5, 11, 99, 99])
    steps = find_signed_distances(padded, padded, distances)
    assert np.isfinite(steps).all()
    np.testing.assert_array_equal(steps[:4, :4], expected)


@pytest.mark.parametrize("count", [1, 63, 64, 65, 300])
def test_ranks_are_numbers_of_smaller_positions(count):
    random = np.random.default_rng(count)
    keys = random.integers(0, 2 * count, count).astype("float32")
    queries = np.float32([[-1, keys[0]], [count + 0.5, np.inf]])
    ranks = _find_ranks(
        ops.convert_to_tensor(queries), ops.sort(ops.convert_to_tensor(keys))
    )
    np.testing.assert_array_equal(
        ranks, np.sum(keys < queries[..., None], axis=-1)
    )
