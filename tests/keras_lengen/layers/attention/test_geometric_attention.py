import numpy as np
import pytest
from keras import ops

from keras_lengen.layers import GeometricAttention, NoPE, RoPE
from tests.keras_lengen.layers.attention.oracle import take_nearest

STATES = np.random.default_rng(0).normal(size=(2, 7, 12)).astype("float32")
MATCHES = np.array(
    [
        [0, 0.5, 0.25, 0.8],
        [0.1, 0, 0.6, 0.3],
        [0.9, 0.2, 0, 0.4],
        [0.5, 0.5, 0.5, 0],
    ]
)
WEIGHTS = [
    [0, 0.5, 0.125, 0.3],
    [0.04, 0, 0.6, 0.108],
    [0.432, 0.12, 0, 0.4],
    [0.125, 0.25, 0.5, 0],
]


def weigh(logits):
    """The weights of logits `(T, T)`."""
    tokens = len(logits)
    layer = GeometricAttention(1, 4, normalize=False)
    layer.build((1, tokens, 4), (1, tokens, 4))
    found = layer._compute_weights(
        ops.convert_to_tensor(logits[None, None], "float32"),
        None,
        ops.arange(tokens, dtype="int32"),
    )
    return np.asarray(found)[0, 0]


def test_published_weights():
    np.testing.assert_allclose(
        take_nearest(MATCHES, np.arange(4)), WEIGHTS, atol=1e-9
    )
    logits = np.log(MATCHES + 1e-30) - np.log1p(-MATCHES)
    np.testing.assert_allclose(weigh(logits), WEIGHTS, atol=1e-6)


def test_extreme_scores_of_a_long_sequence_lose_no_precision():
    tokens = 1000
    generator = np.random.default_rng(0)
    scores = generator.normal(-3, 3, size=(tokens, tokens))
    # One key of ten matches for certain or not at all. Sums over all keys are
    # so large that float32 would lose the others' part of them.
    certain = generator.choice([-1000, 1000], size=scores.shape)
    scores = np.where(generator.random(scores.shape) < 0.1, certain, scores)
    scores = scores.astype("float32")
    index = np.arange(tokens)
    expected = np.zeros((tokens, tokens))
    for i, logits in enumerate(scores.astype("float64")):
        nearest_first = np.lexsort((index < i, abs(index - i)))[1:]
        misses = np.exp(-np.logaddexp(0, logits[nearest_first]))
        missed = np.cumprod([1.0, *misses[:-1]])
        expected[i, nearest_first] = missed * (1 - misses)
    large = expected > 1e-6
    assert large.mean() > 0.005
    np.testing.assert_allclose(weigh(scores)[large], expected[large], rtol=1e-4)


def test_it_starts_as_published():
    layer = GeometricAttention(3, 4)
    layer.build(STATES.shape, STATES.shape)
    assert (float(layer.alpha), float(layer.beta)) == (0.5, 1.0)
    assert float(layer.gamma) == 0.0
    assert not np.any(layer.content_bias)
    # alpha, beta, gamma; c; and a map to two numbers a head.
    plain = 4 * (12 * 12 + 12)
    assert layer.count_params() == plain + 3 + 12 + (12 * 6 + 6)


def test_refusals():
    GeometricAttention(3, 4, encoding=NoPE())
    with pytest.raises(ValueError, match="no use for encoding=RoPE"):
        GeometricAttention(3, 4, encoding=RoPE())
    with pytest.raises(ValueError, match="must be the same tensor"):
        GeometricAttention(3, 4)(STATES, STATES + 1)
