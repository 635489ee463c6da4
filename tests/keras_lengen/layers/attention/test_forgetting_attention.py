import numpy as np
import pytest
import tensorflow as tf
from scipy.special import softmax

from keras_lengen.layers import ForgettingAttention
from keras_lengen.layers.attention.forgetting_attention import _sum_between

CAUSAL = {"use_causal_mask": True, "return_attention_scores": True}


def make_gates(kernel, bias, heads=1):
    """A layer with given gates and, for one head, equal scores."""
    kernel = np.asarray(kernel)
    layer = ForgettingAttention(heads, 4, use_bias=False)
    layer.build((None, None, len(kernel)), (None, None, len(kernel)))
    if heads == 1:
        layer.query_dense.kernel.assign(0 * layer.query_dense.kernel)
    layer.forget_dense.kernel.assign(kernel)
    layer.forget_dense.bias.assign(bias)
    return layer


def test_published_weights():
    """Of the last of four queries, with equal scores."""
    layer = make_gates(np.eye(12)[:, :1], [0.0])
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


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("length", [129, 2000])
def test_sums_of_gates_keep_their_precision(length, jit_compile):
    random = np.random.default_rng(2)
    layer = make_gates(random.normal(size=(12, 1)), random.normal(size=1))
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
