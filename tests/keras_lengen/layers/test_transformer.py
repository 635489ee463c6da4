"""Blocks: attention, norms and the feed-forward network."""

import keras
import numpy as np
import pytest
from keras import ops
from scipy.special import erf, expit

from keras_lengen.layers import (
    ALiBi,
    FeedForward,
    MultiHeadAttention,
    Recipe,
    RoPE,
    TransformerBlock,
)
from tests.covering import cover
from tests.keras_lengen.layers.attention.oracle import project
from tests.refusals import refuses

HEADS, TOKENS, WIDTH = 2, 6, 16
RANDOM = np.random.default_rng(0)
X = ops.convert_to_tensor(RANDOM.normal(size=(2, TOKENS, WIDTH)), "float32")
MEMORY = ops.convert_to_tensor(RANDOM.normal(size=(2, 9, 6)), "float32")
MEMORY_MASK = np.arange(9) < np.array([[7], [9]])


def layer_norm(x, epsilon=1e-5):
    return rms_norm(x - x.mean(axis=-1, keepdims=True), epsilon)


def rms_norm(x, epsilon=1e-6):
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + epsilon)


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x * expit(x),
    "gelu": lambda x: x * (1 + erf(x / 2**0.5)) / 2,
    "sigmoid": expit,
}


def feed_forward(layer, x, activate, gated):
    hidden = project(layer.hidden_dense, x)
    if gated:
        hidden = activate(project(layer.gate_dense, x)) * hidden
    else:
        hidden = activate(hidden)
    return project(layer.output_dense, hidden)


@pytest.mark.parametrize(
    "normalization, rms, epsilon, causal, cross, activation, gated",
    cover(
        *(["post", "pre", None], [False, True], [None, 0.25], [False, True]),
        *([False, True], list(ACTIVATIONS), [False, True]),
    ),
)
def test_a_block_is_its_formula(
    normalization, rms, epsilon, causal, cross, activation, gated
):
    """Attention is computed by the layers of the block."""
    block = TransformerBlock(
        HEADS,
        feedforward_dim=5,
        normalization=normalization,
        rms_norm=rms,
        norm_epsilon=epsilon,
        feedforward=Recipe(FeedForward, activation=activation, gated=gated),
        encoding=ALiBi(),
        use_causal_mask=causal,
        cross_attention=cross,
        cross_encoding=RoPE() if cross else None,
    )
    positions = np.arange(3, 9)
    mask = np.arange(TOKENS) != np.full((TOKENS, 1), 2)
    own = {"positions": positions, "attention_mask": mask}
    of_memory = np.arange(9)[::-1].copy()
    memory = {
        "memory": MEMORY,
        "memory_mask": MEMORY_MASK,
        "memory_positions": of_memory,
    }
    block(X, **(memory if cross else {}))
    for weight in block.weights:
        noise = np.random.default_rng(1).normal(size=weight.shape) / 4
        if weight.name not in ("gamma", "beta", "scale"):
            weight.assign(noise)
    output = block(X, **own, **(memory if cross else {}))
    assert block.compute_output_shape(X.shape) == output.shape

    def attend(x):
        x = ops.convert_to_tensor(x, "float32")
        return np.asarray(
            block.attention_layer(x, x, use_causal_mask=causal, **own)
        )

    def cross_attend(x):
        return block.cross_attention_layer(
            ops.convert_to_tensor(x, "float32"),
            MEMORY,
            value_mask=MEMORY_MASK,
            positions=positions,
            key_positions=of_memory,
        ).numpy()

    def network(x):
        return feed_forward(
            block.feedforward_layer, x, ACTIVATIONS[activation], gated
        )

    def norm(x):
        given = {} if epsilon is None else {"epsilon": epsilon}
        return (rms_norm if rms else layer_norm)(x, **given)

    x = np.asarray(X)
    for part in (attend, *([cross_attend] * cross), network):
        x = x + part(norm(x) if normalization == "pre" else x)
        x = norm(x) if normalization == "post" else x
    np.testing.assert_allclose(output, x, atol=1e-4)


def test_kernels_start_as_in_the_authors_code():
    block = TransformerBlock(8)
    block.build((None, None, 64))
    assert block.feedforward_dim is None
    feedforward = block.feedforward_layer
    assert feedforward.hidden_dense.units == 4 * 64
    for dense in (
        block.attention_layer.query_dense,
        block.attention_layer.output_dense,
        feedforward.hidden_dense,
        feedforward.output_dense,
    ):
        kernel = np.asarray(dense.kernel)
        # Cut off at two deviations of 1 / sqrt(inputs).
        deviation = kernel.shape[0] ** -0.5
        assert abs(kernel.std() / deviation - 0.87963) < 0.03
        assert np.abs(kernel).max() <= 2 * deviation * 1.0001


def embed(token_ids):
    keras.utils.set_random_seed(0)
    layer = keras.layers.Embedding(9, WIDTH, mask_zero=True)
    return layer(np.array(token_ids))


@pytest.mark.parametrize(
    ("normalization", "policy", "positions"),
    cover(["post", "pre"], ["float32", "mixed_bfloat16"], [None, np.arange(5)]),
)
def test_padding_by_masks_of_keras_changes_nothing(
    normalization, policy, positions
):
    block = TransformerBlock(
        HEADS, encoding=ALiBi(), normalization=normalization, dtype=policy
    )
    padded = block(embed([[5, 6, 7, 0, 0]]), positions=positions)
    assert padded._keras_mask.numpy().tolist() == [[True] * 3 + [False] * 2]
    alone = block(embed([[5, 6, 7]]))
    np.testing.assert_allclose(
        ops.cast(padded[:, :3], "float32"),
        ops.cast(alone, "float32"),
        atol=1e-6 if policy == "float32" else 0.05,
    )


class Unregistered(MultiHeadAttention):
    pass


def load_unregistered():
    config = TransformerBlock(2, attention=Unregistered).get_config()
    TransformerBlock.from_config(config)


@refuses(
    (
        lambda: TransformerBlock(3)(X),
        "num_heads=3 does not divide the width 16",
    ),
    (
        lambda: TransformerBlock(2)(keras.Input((16,))),
        r"inputs must have shape \(B, T, M\); got \(None, 16\)",
    ),
    (load_unregistered, "no registered class 'Unregistered'"),
)
def test_wrong_arguments_raise(call):
    call()


@pytest.mark.parametrize(
    ("use_bias", "count"), [("feedforward", 2), (True, 2 + 8), (False, 0)]
)
def test_biases_are_where_they_are_wanted(use_bias, count):
    block = TransformerBlock(HEADS, use_bias=use_bias, cross_attention=True)
    block(X, memory=MEMORY)
    assert [weight.name for weight in block.weights].count("bias") == count
