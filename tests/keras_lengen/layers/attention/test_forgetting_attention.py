import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import expit, softmax

from keras_lengen.layers import ALiBi, ForgettingAttention, MultiHeadAttention
from keras_lengen.layers.attention.forgetting_attention import _sum_between
from keras_lengen.models import TransformerDecoder
from tests.keras_lengen.layers.arguments import assert_config_round_trip
from tests.keras_lengen.models.small import (
    assert_chunks_change_nothing,
    assert_generation_is_the_full_pass,
)

STATES = np.random.default_rng(0).normal(size=(2, 7, 12)).astype("float32")
CAUSAL = {"use_causal_mask": True, "return_attention_scores": True}


def make(*, gates=None, heads=3, **arguments):
    """A layer with random weights, or with constant gates of each head."""
    layer = ForgettingAttention(heads, 4, **arguments)
    layer.build(STATES.shape, STATES.shape)
    generator = np.random.default_rng(1)
    layer.forget_dense.kernel.assign(
        np.zeros(layer.forget_dense.kernel.shape)
        if gates is not None
        else generator.normal(size=layer.forget_dense.kernel.shape)
    )
    layer.forget_dense.bias.assign(
        generator.normal(size=layer.forget_dense.bias.shape)
        if gates is None
        else gates
    )
    return layer


def test_published_weights():
    """Of the last of four queries, with equal scores."""
    layer = make(heads=1, use_bias=False)
    layer.query_dense.kernel.assign(np.zeros((12, 4)))
    layer.forget_dense.kernel.assign(np.eye(12)[:, :1])
    layer.forget_dense.bias.assign([0.0])
    states = np.zeros((1, 4, 12), "float32")
    states[0, :, 0] = 5, 0, -1, 2
    _, weights = layer(states, states, **CAUSAL)
    expected = [0.052967, 0.105935, 0.393895, 0.447203]
    np.testing.assert_allclose(weights[0, 0, 3], expected, atol=1e-5)
    # The bias of a query's own key is 0.
    bias = np.log(np.asarray(weights)[0, 0] + np.triu(np.ones((4, 4)), 1))
    bias = bias - np.diag(bias)[:, None]
    expected = [-2.133337, -1.44019, -0.126928, 0]
    np.testing.assert_allclose(bias[3], expected, atol=1e-5)
    # That of the key before is the logarithm of the query's gate.
    logarithms = [-0.693147, -1.313262, -0.126928]
    np.testing.assert_allclose(np.diag(bias, k=-1), logarithms, atol=1e-5)


@pytest.mark.parametrize("encoding", [None, ALiBi()])
@pytest.mark.parametrize("padded", [False, True])
def test_weights_by_the_definition(encoding, padded):
    layer = make(encoding=encoding, use_bias=False)
    arguments, real = {}, np.ones((2, 7), bool)
    if padded:
        real = np.arange(7) < np.array([[5], [7]])
        arguments["value_mask"] = real
    _, weights = layer(STATES, STATES, **CAUSAL, **arguments)
    query, key = (
        (STATES @ dense.kernel.numpy()).reshape(2, 7, 3, 4)
        for dense in (layer.query_dense, layer.key_dense)
    )
    gates = STATES @ layer.forget_dense.kernel.numpy()
    gates = np.log(expit(gates + layer.forget_dense.bias.numpy()))
    scores = np.einsum("bihd,bjhd->bhij", query, key) / 2
    if encoding is not None:
        scores = scores + np.asarray(encoding(query, causal=True))
    for example in range(2):
        for i in range(7):
            for j in range(7):
                between = range(j + 1, i + 1)
                lost = sum(
                    gates[example, t] * real[example, t] for t in between
                )
                scores[example, :, i, j] += lost
                if j > i or not real[example, j]:
                    scores[example, :, i, j] = -np.inf
    np.testing.assert_allclose(weights, softmax(scores, axis=-1), atol=1e-5)


def test_constant_gates_are_alibi():
    slopes = np.array([2**-4, 2**-8, 2**-2])
    gates = -np.log(np.expm1(slopes))
    layer = make(gates=gates)
    plain = MultiHeadAttention(3, 4, encoding=ALiBi())
    plain.build(STATES.shape, STATES.shape)
    plain.set_weights(layer.get_weights()[:-2])
    for ours, theirs in zip(
        layer(STATES, STATES, **CAUSAL),
        plain(STATES, STATES, **CAUSAL),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize(
    "groups", [pytest.param(None, marks=pytest.mark.product), 1]
)
def test_generation_and_chunks_are_the_full_pass(groups):
    keras.utils.set_random_seed(0)
    model = TransformerDecoder(
        vocabulary_size=9,
        output_size=9,
        num_layers=2,
        num_heads=2,
        model_dim=16,
        num_key_value_heads=groups,
        attention=ForgettingAttention,
    )
    ids = np.random.default_rng(0).integers(0, 9, (2, 5))
    assert_generation_is_the_full_pass(model, ids)
    whole = np.random.default_rng(1).integers(0, 9, (2, 9))
    assert_chunks_change_nothing(model, whole)


def long_weights(length, *, queries=None, jit_compile=False, **arguments):
    """Gates, and weights with equal scores, of the last queries."""
    layer = make(heads=1, use_bias=False, **arguments)
    layer.query_dense.kernel.assign(np.zeros((12, 4)))
    random = np.random.default_rng(2)
    states = random.normal(size=(1, length, 12)).astype("float32")
    # A gate that is almost 0 must not blur the later ones.
    states[0, length // 3] *= 1000
    tail = states[:, -(queries or length) :]

    def call(states, tail):
        return layer(tail, states, self_attention=False, **CAUSAL)[1]

    call(states, tail)
    call = tf.function(call, jit_compile=jit_compile)
    gates = states[0].astype("float64") @ layer.forget_dense.kernel.numpy()
    gates = -np.logaddexp(0, -gates[:, 0] - layer.forget_dense.bias.numpy())
    return gates, np.asarray(call(states, tail))[0, 0]


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("length", [100, 129, 2000])
def test_sums_of_gates_keep_their_precision(length, jit_compile):
    gates, weights = long_weights(length, queries=5, jit_compile=jit_compile)
    for query, row in zip(range(length - 5, length), weights, strict=True):
        lost = [gates[key + 1 : query + 1].sum() for key in range(length)]
        expected = softmax(np.where(np.arange(length) <= query, lost, -np.inf))
        np.testing.assert_allclose(row, expected, atol=1e-7, rtol=3e-6)


def test_gradients_of_blocks():
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


def test_it_is_causal():
    with pytest.raises(ValueError, match="ForgettingAttention is for causal"):
        ForgettingAttention(2, 4)(STATES, STATES)


def test_config_rebuilds_it():
    assert_config_round_trip(ForgettingAttention(2, 4))
