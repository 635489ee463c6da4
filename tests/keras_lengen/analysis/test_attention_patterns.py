import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from keras_lengen.analysis import (
    attention_distance,
    attention_divergence,
    attention_maximum,
)
from tests.refusals import refuses


def draw_weights(seed, heads, keys=5):
    rng = np.random.default_rng(seed)
    weights = np.exp(rng.normal(size=(2, heads, 5, keys))) * np.tri(5, keys)
    return weights / weights.sum(axis=-1, keepdims=True)


def test_divergence_of_every_pair_of_heads():
    first, second = draw_weights(0, heads=2), draw_weights(1, heads=3)
    counted = np.array([[True] * 5, [True] * 2 + [False] * 3])
    found = attention_divergence(first, second, queries=counted)
    assert found.shape == (2, 3)
    for one in range(2):
        for other in range(3):
            wanted = [
                jensenshannon(first[b, one, t], second[b, other, t]) ** 2
                for b, t in zip(*np.nonzero(counted), strict=True)
            ]
            assert found[one, other] == pytest.approx(np.mean(wanted), abs=1e-9)


def test_distance_by_hand():
    weights = np.zeros((1, 2, 3, 3))
    # The first head attends to itself, the second to the first token.
    weights[0, 0] = np.eye(3)
    weights[0, 1, :, 0] = 1
    np.testing.assert_allclose(attention_distance(weights), [0, 1])
    last = np.array([[False, False, True]])
    np.testing.assert_allclose(
        attention_distance(weights, queries=last), [0, 2]
    )


RIGHT = draw_weights(0, heads=1)
ACROSS = draw_weights(0, heads=1, keys=7)
NONE, FLOATS = {"queries": np.zeros((2, 5), bool)}, {"queries": np.ones((2, 5))}


@refuses(
    (attention_distance, [RIGHT[0]], {}, r"floats \(B, H, T, S\); got"),
    (attention_distance, [RIGHT * 2], {}, "weights of each query sum"),
    (attention_distance, [-RIGHT], {}, "must be 0 or more"),
    (attention_distance, [ACROSS], {}, "as many keys as queries"),
    (attention_distance, [RIGHT], NONE, "not all of them False"),
    (attention_distance, [RIGHT], FLOATS, r"queries must be bool \(2, 5\)"),
    (attention_divergence, [RIGHT, RIGHT[:1]], {}, "must be of the same t"),
    (attention_divergence, [RIGHT, -RIGHT], {}, "other_weights must be 0"),
    (attention_divergence, [RIGHT, RIGHT], NONE, "not all of them False"),
    (attention_maximum, [-RIGHT], {}, "must be finite and at least 0"),
)
def test_wrong_arguments(function, arguments, options):
    function(*arguments, **options)


def test_maximum_over_heads():
    weights = draw_weights(0, heads=3).astype(np.float32)
    found = attention_maximum(weights)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, weights.max(axis=1))
