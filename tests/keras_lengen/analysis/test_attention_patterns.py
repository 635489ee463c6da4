import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from keras_lengen.analysis import (
    attention_distance,
    attention_divergence,
    attention_maximum,
)


def draw_weights(seed, heads, batch=2, queries=5, keys=5, causal=True):
    scores = np.random.default_rng(seed).normal(
        size=(batch, heads, queries, keys)
    )
    if causal:
        scores = np.where(np.tri(queries, keys), scores, -np.inf)
    weights = np.exp(scores)
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


def test_divergence_is_0_of_a_head_and_itself_and_at_most_ln_2():
    weights = draw_weights(0, heads=3).astype(np.float32)
    found = attention_divergence(weights, weights)
    np.testing.assert_allclose(np.diag(found), 0, atol=1e-12)
    np.testing.assert_allclose(found, found.T, atol=1e-12)
    apart = np.zeros((2, 1, 1, 3, 4))
    apart[0, ..., 0] = apart[1, ..., 3] = 1
    found = attention_divergence(*apart)
    np.testing.assert_allclose(found, np.log(2), rtol=1e-12)


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: attention_distance(RIGHT[0]), r"floats \(B, H, T, S\); got"),
        (lambda: attention_distance(RIGHT * 2), "weights of each query sum"),
        (lambda: attention_distance(-RIGHT), "must be 0 or more"),
        (
            lambda: attention_distance(
                draw_weights(0, heads=1, keys=7, causal=False)
            ),
            "as many keys as queries",
        ),
        (
            lambda: attention_distance(RIGHT, queries=np.zeros((2, 5), bool)),
            "not all of them False",
        ),
        (
            lambda: attention_distance(RIGHT, queries=np.ones((2, 5))),
            r"queries must be bool \(2, 5\)",
        ),
        (
            lambda: attention_divergence(RIGHT, RIGHT[:1]),
            "other_weights must be of the same tokens",
        ),
        (
            lambda: attention_divergence(RIGHT, RIGHT * np.nan),
            "other_weights must be 0 or more",
        ),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_maximum_over_heads():
    weights = draw_weights(0, heads=3).astype(np.float32)
    found = attention_maximum(weights)
    assert found.dtype == np.float32
    for b, t, s in np.ndindex(found.shape):
        assert found[b, t, s] == max(weights[b, h, t, s] for h in range(3))
    with pytest.raises(ValueError, match=r"floats \(B, H, T, S\); got"):
        attention_maximum(weights[0])
