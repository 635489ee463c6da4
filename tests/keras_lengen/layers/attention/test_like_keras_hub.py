"""Layers do what those of the same role do in KerasHub."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_lengen.layers import (
    MultiHeadAttention,
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
