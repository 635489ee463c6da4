"""Attentions with other rules of weights: published numbers, precision."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from scipy.special import expit, softmax

from keras_lengen.layers import (
    ForgettingAttention,
    GeometricAttention,
    StickBreakingAttention,
)
from keras_lengen.layers.attention import path_attention
from keras_lengen.layers.attention.forgetting_attention import _sum_between
from keras_lengen.layers.attention.path_attention import (
    multiply_along_paths,
    solve_blocks,
)
from keras_lengen.layers.attention.visibility import Reach, find_visible
from tests.keras_lengen.layers.attention.oracle import (
    break_sticks,
    take_nearest,
)

TOKENS, WIDTH = 150, 8
CAUSAL = {"use_causal_mask": True, "return_attention_scores": True}


@pytest.mark.parametrize("jit_compile", [False, True])
def test_sums_of_gates_keep_their_precision(jit_compile):
    length = 2000
    random = np.random.default_rng(2)
    layer = ForgettingAttention(1, 4, use_bias=False)
    layer.build((None, None, 12), (None, None, 12))
    # Scores are equal.
    layer.query_dense.kernel.assign(0 * layer.query_dense.kernel)
    layer.forget_dense.kernel.assign(random.normal(size=(12, 1)))
    layer.forget_dense.bias.assign(random.normal(size=1))
    states = random.normal(size=(1, length, 12)).astype("float32")
    # A gate that is almost 0 must not blur the later ones.
    states[0, length // 3] *= 1000
    tail = states[:, -5:]

    @tf.function(jit_compile=jit_compile)
    def attend(states, tail):
        return layer(tail, states, self_attention=False, **CAUSAL)[1]

    gates = states[0].astype("float64") @ layer.forget_dense.kernel.numpy()
    gates = -np.logaddexp(0, -gates[:, 0] - layer.forget_dense.bias.numpy())
    weights = np.asarray(attend(states, tail))[0, 0]
    for query, row in zip(range(length - 5, length), weights, strict=True):
        lost = [gates[key + 1 : query + 1].sum() for key in range(length)]
        expected = softmax(np.where(np.arange(length) <= query, lost, -np.inf))
        np.testing.assert_allclose(row, expected, atol=1e-7, rtol=3e-6)


def test_gradients_of_long_sums():
    """Those of a sum of gates over each pair of tokens."""
    length = 300
    random = np.random.default_rng(3)
    kept = tf.constant(-random.random((1, 2, length)).astype("float32"))
    factors = random.normal(size=(1, 2, 7, length)).astype("float32")
    indices = np.array([0, 3, 127, 128, 200, 256, 299], "int32")
    with tf.GradientTape() as tape:
        tape.watch(kept)
        sums = _sum_between(kept, indices)
        total = tf.reduce_sum(sums * factors)
    between = np.zeros((7, length, length))
    for row, query in enumerate(indices):
        for key in range(length):
            between[row, key, key + 1 : query + 1] = 1
    np.testing.assert_allclose(
        sums, np.einsum("qkt,bht->bhqk", between, kept), atol=1e-4
    )
    np.testing.assert_allclose(
        tape.gradient(total, kept),
        np.einsum("qkt,bhqk->bht", between, factors),
        atol=1e-3,
    )


def weigh(kind, scores, **arguments):
    """The weights of scores `(T, T)`."""
    tokens = len(scores)
    rule = kind(1, 4, **arguments).make_weights()
    found = rule(
        ops.convert_to_tensor(scores[None, None], "float32"),
        find_visible(Reach(), ops.arange(tokens, dtype="int32"), tokens),
    )
    return np.asarray(found)[0, 0]


def test_extreme_scores_of_long_sticks_lose_no_precision():
    generator = np.random.default_rng(0)
    scores = generator.normal(-3, 3, size=(400, 400))
    # Some early keys take everything: sums that begin with them are so large
    # that float32 would lose the others' part.
    certain = generator.choice([-1e6, 1e6], size=(400, 200))
    scores[:, :200] = np.where(
        generator.random((400, 200)) < 0.02, certain, scores[:, :200]
    )
    expected = break_sticks(
        scores[None, None], np.tri(400, dtype=bool), np.arange(400)
    )
    found = weigh(StickBreakingAttention, scores)
    np.testing.assert_allclose(found, expected[0, 0], atol=1e-5)
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-4)


def test_extreme_scores_of_many_matches_lose_no_precision():
    generator = np.random.default_rng(0)
    scores = generator.normal(-3, 3, size=(400, 400))
    # One key of ten matches for certain or not at all. Sums over all keys are
    # so large that float32 would lose the others' part of them.
    certain = generator.choice([-1000, 1000], size=scores.shape)
    scores = np.where(generator.random(scores.shape) < 0.1, certain, scores)
    scores = scores.astype("float32")
    found = weigh(GeometricAttention, scores, normalize=False)
    expected = take_nearest(expit(np.float64(scores)), np.arange(400))
    large = expected > 1e-6
    assert large.mean() > 0.005
    np.testing.assert_allclose(found[large], expected[large], rtol=1e-4)


def test_geometric_attention_starts_as_published():
    layer = GeometricAttention(3, 4)
    layer.build((2, 7, 12), (2, 7, 12))
    assert (float(layer.alpha), float(layer.beta)) == (0.5, 1.0)
    assert float(layer.gamma) == 0.0
    assert not np.any(layer.content_bias)
    with pytest.raises(ValueError, match="must be the same tensor"):
        layer(np.ones((2, 7, 12)), np.ones((2, 7, 12)))


@functools.cache
def make_long_paths():
    """Tensors of blocks that the last one does not fill, with products."""
    random = np.random.default_rng(0)
    query, key, directions = random.normal(size=(3, TOKENS, WIDTH))
    # Alike directions and large strengths, as of reflections, are the hardest.
    directions[40:] = directions[0] + 0.1 * directions[40:]
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    strengths = 2 * expit(random.normal(size=(TOKENS, 1)) + 3)
    products, moved = np.zeros((TOKENS, TOKENS)), key.copy()
    for token in range(TOKENS):
        direction, earlier = directions[token], moved[:token]
        share = strengths[token] * (earlier @ direction)
        moved[:token] -= share[:, None] * direction
        products[token, : token + 1] = moved[: token + 1] @ query[token]
    tensors = [
        ops.convert_to_tensor(each[None, :, None], "float32")
        for each in (query, key, directions, strengths)
    ]
    return tensors, products


def compute_products(query, key, directions, strengths, indices):
    solved = solve_blocks(key, directions, strengths)
    return multiply_along_paths(query, key, solved, indices)


@pytest.mark.parametrize("length", ["eager", "known", "unknown"])
def test_blocks_of_a_long_sequence_are_exact(length, monkeypatch):
    tensors, expected = make_long_paths()
    indices = ops.arange(TOKENS, dtype="int32")
    compute = compute_products
    if length == "known":
        # Few large blocks.
        monkeypatch.setattr(path_attention, "MOST_BLOCKS", 2)
        compute = tf.function(compute, jit_compile=True)
    if length == "unknown":
        shapes = [tf.TensorSpec((None, None, *t.shape[2:])) for t in tensors]
        compute = tf.function(
            compute, [*shapes, tf.TensorSpec((None,), "int32")]
        )
    products = np.asarray(compute(*tensors, indices))[0, 0]
    lower = np.tri(TOKENS, dtype=bool)
    np.testing.assert_allclose(
        np.where(lower, products, 0), expected, atol=1e-4
    )
    # The last queries only.
    last = compute(tensors[0][:, 130:], *tensors[1:], indices[130:])
    np.testing.assert_allclose(
        np.where(lower[130:], last[0, 0], 0), expected[130:], atol=1e-4
    )


def test_sizes_of_blocks():
    """64 keys; more only where there would be more than 32 blocks."""
    for tokens, size in ((1, 1), (64, 64), (65, 64), (2048, 64), (2049, 128)):
        features = ops.ones((1, tokens, 1, 2))
        _, _, of_keys = solve_blocks(features, features, features[..., :1])
        assert of_keys.shape[-1] == size
