"""Layers do what those of the same role do in KerasHub."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_lengen.analysis import attention_weights
from keras_lengen.layers import (
    InterpolatedPositions,
    LearnedEncoding,
    MultiHeadAttention,
    RoPE,
    TransformerBlock,
)

RANDOM = np.random.default_rng(6)
X = RANDOM.normal(size=(2, 5, 8)).astype("float32")
MEMORY = RANDOM.normal(size=(2, 3, 8)).astype("float32")
MASK = np.tri(5, dtype=bool)


def assert_same(first, second):
    for own, other in zip(
        keras.tree.flatten(first), keras.tree.flatten(second), strict=True
    ):
        np.testing.assert_allclose(own, other, atol=1e-5)


def test_outputs_and_cache_are_those_of_keras_hub():
    layers = pytest.importorskip("keras_hub.layers")
    theirs = layers.CachedMultiHeadAttention(2, 4)
    empty = np.zeros((2, 2, 5, 2, 4), "float32")
    arguments = {"attention_mask": MASK, "cache_update_index": 0}
    output, cache = theirs(X, X, cache=empty, **arguments)
    ours = MultiHeadAttention(2, 4)
    ours.load_keras_weights(theirs)
    found, (keys, values) = ours(X, X, cache=ours.make_cache(2, 5), **arguments)
    assert_same(found, output)
    assert_same(ops.stack([keys, values], axis=1), cache)
    # The cache alone, which is not changed.
    query = X[:, :2]
    mask = MASK[1:3]
    output, cache = theirs(query, query, cache=cache, attention_mask=mask)
    found, _ = ours(query, query, cache=(keys, values), attention_mask=mask)
    assert_same(found, output)


@pytest.mark.parametrize("with_cache", [False, True])
@pytest.mark.parametrize("cross", [False, True])
def test_scores_of_a_block(cross, with_cache):
    memory = MEMORY if cross else None
    block = TransformerBlock(2, cross_attention=cross, use_causal_mask=True)
    block.build(X.shape, MEMORY.shape if cross else None)
    arguments = {"memory": memory}
    if with_cache:
        cache = block.make_cache(2, 5, memory)
        arguments |= {"cache": cache, "cache_update_index": 0}
    expected = block(X, **arguments)
    output, scores, *cache = block(X, return_attention_scores=True, **arguments)
    assert_same((output, *cache), expected)
    _, of_attention = block.attention_layer(
        X, X, use_causal_mask=True, return_attention_scores=True
    )
    np.testing.assert_allclose(scores, of_attention, atol=1e-5)


def test_scores_of_a_block_in_a_functional_model():
    inputs = keras.Input((None, 8))
    block = TransformerBlock(2)
    output, scores = block(inputs, return_attention_scores=True)
    assert output.shape == (None, None, 8)
    assert scores.shape == (None, 2, None, None)
    model = keras.Model(inputs, [output, scores])
    expected = model(X)
    assert expected[1].shape == (2, 2, 5, 5)
    found, outputs = attention_weights(model, X, return_outputs=True)
    np.testing.assert_array_equal(*found.values(), expected[1])
    assert_same(outputs, expected)


@pytest.mark.parametrize("normalization", ["post", "pre"])
def test_dropout_of_nearly_all_leaves_the_input(normalization):
    block = TransformerBlock(
        2, feedforward_dim=4, dropout=0.99999, normalization=normalization
    )
    model = keras.Sequential([keras.Input((5, 8)), block])
    expected = X
    if normalization == "post":
        expected = block.feedforward_norm(block.attention_norm(X))
    np.testing.assert_allclose(model(X, training=True), expected, atol=1e-5)


@pytest.mark.parametrize("cross", [False, True])
def test_a_block_passes_masks_on(cross):
    x = keras.layers.Embedding(9, 8, mask_zero=True)(np.array([[1, 2, 0, 0]]))
    block = TransformerBlock(2, cross_attention=cross, use_causal_mask=True)
    output = block(x, memory=X[:1] if cross else None)
    np.testing.assert_array_equal(
        output._keras_mask, [[True, True, False, False]]
    )


def test_tokens_and_positions_are_embedded():
    def count(shape, dtype=None):
        return ops.reshape(ops.arange(np.prod(shape), dtype=dtype), shape)

    tokens = keras.layers.Embedding(5, 3, "ones", mask_zero=True)
    encoding = LearnedEncoding(max_position=4, initializer=count)
    output = encoding(tokens(np.array([[1, 2, 0], [4, 0, 0]])))
    np.testing.assert_array_equal(output[0], 1 + np.arange(9).reshape(3, 3))
    np.testing.assert_array_equal(
        output._keras_mask, [[True, True, False], [True, False, False]]
    )


@pytest.mark.parametrize("start_index", [0, 12])
def test_scaled_rotations(start_index):
    sampler = InterpolatedPositions(train_length=4, scaling_factor=5)
    encoding = RoPE(layout="halves", sampler=sampler)
    x = np.ones((1, 3, 2, 4), "float32")
    angles = (start_index + np.arange(3))[:, None] / 5 * [1, 1 / 100]
    sine, cosine = np.sin(angles), np.cos(angles)
    expected = np.concatenate([cosine - sine, cosine + sine], axis=-1)
    # Positions of the whole sequence, of which these are the last tokens.
    positions = sampler(np.ones((1, start_index + 3)))[start_index:]
    found = encoding(x, positions=positions)
    np.testing.assert_allclose(
        found, np.broadcast_to(expected[:, None], x.shape), atol=1e-5
    )
