import functools

import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from scipy.special import expit

from keras_lengen.layers import PaTHAttention, PoPE
from keras_lengen.layers.attention import path_attention
from keras_lengen.layers.attention.path_attention import (
    multiply_along_paths,
    solve_blocks,
)

TOKENS, WIDTH = 150, 8


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"encoding": PoPE()}, "no use for encoding=PoPE, whose"),
        ({"scale_gates": True}, "set use_forget_gate=True too"),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        PaTHAttention(2, 4, **arguments)
