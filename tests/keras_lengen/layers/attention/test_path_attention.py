import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from scipy.special import expit, softmax

from keras_lengen.layers import (
    ALiBi,
    PaTHAttention,
    PoPE,
    RoPE,
)
from keras_lengen.layers.attention import path_attention
from keras_lengen.layers.attention.path_attention import (
    multiply_along_paths,
    solve_blocks,
)
from keras_lengen.models import TransformerDecoder
from tests.keras_lengen.layers.arguments import assert_config_round_trip
from tests.keras_lengen.models.small import (
    assert_chunks_change_nothing,
    assert_generation_is_the_full_pass,
)

RANDOM = np.random.default_rng(0)
TOKENS, HEADS, WIDTH = 7, 3, 4
STATES = RANDOM.normal(size=(2, TOKENS, 12)).astype("float32")
CAUSAL = {"use_causal_mask": True, "return_attention_scores": True}


def make(**arguments):
    """A layer with random weights."""
    layer = PaTHAttention(HEADS, WIDTH, use_bias=False, **arguments)
    layer.build(STATES.shape, STATES.shape)
    random = np.random.default_rng(1)
    layer.set_weights([random.normal(size=w.shape) for w in layer.weights])
    return layer


def find_paths(states, layer):
    """Directions and strengths of one example without padding, by head."""
    low = states @ layer.rank_dense.kernel.numpy()
    maps = low @ layer.direction_dense.kernel.numpy()
    maps = maps.reshape(len(states), -1, WIDTH)
    kernel = layer.convolution.numpy()
    directions = np.zeros_like(maps)
    for t in range(len(states)):
        for back in range(min(t + 1, 3)):
            directions[t] += kernel[2 - back] * maps[t - back]
    directions *= expit(directions)
    square = np.sum(directions**2, axis=-1, keepdims=True)
    directions /= np.sqrt(square + 1e-6)
    strengths = states @ layer.strength_dense.kernel.numpy()
    return directions, 2 * expit(strengths + layer.strength_dense.bias.numpy())


def multiply(query, key, directions, strengths):
    """Products of all matrices between each query and key, one by one."""
    tokens, width = key.shape
    products = np.zeros((tokens, tokens))
    for j in range(tokens):
        vector = key[j].astype("float64")
        for i in range(j, tokens):
            if i > j:
                w = directions[i].astype("float64")
                matrix = np.eye(width) - strengths[i] * np.outer(w, w)
                vector = matrix @ vector
            products[i, j] = query[i] @ vector
    return products


@pytest.mark.parametrize(
    ("padding", "arguments"),
    [
        ("none", {}),
        ("right", {"use_forget_gate": True}),
        ("left", {"encoding": ALiBi(), "num_key_value_heads": 1}),
        ("between", {"encoding": RoPE()}),
        (
            "right",
            {
                "encoding": ALiBi(),
                "use_forget_gate": True,
                "scale_gates": True,
            },
        ),
    ],
    ids=["none", "right", "left", "between", "scaled gates"],
)
def test_weights_by_the_definition(padding, arguments):
    layer = make(**arguments)
    real = np.ones((2, TOKENS), bool)
    real[0, {"none": [], "right": [5, 6], "left": [0, 1]}.get(padding, 3)] = 0
    masks = {"query_mask": real, "value_mask": real}
    _, weights = layer(STATES, STATES, **masks, **CAUSAL)
    for example in range(2):
        kept = np.flatnonzero(real[example])
        states = STATES[example, kept]
        query, key = (
            (states @ dense.kernel.numpy()).reshape(len(kept), -1, WIDTH)
            for dense in (layer.query_dense, layer.key_dense)
        )
        scores = np.zeros((HEADS, len(kept), len(kept)))
        if layer.encoding.stage == "rotation":
            query, key = (
                np.asarray(each)[0]
                for each in layer.encoding(query[None], key[None])
            )
        if layer.encoding.stage == "bias":
            scores = scores + np.asarray(
                layer.encoding(query[None], causal=True)[0]
            )
        directions, strengths = find_paths(states, layer)
        for head in range(HEADS):
            of_key = head % key.shape[1]
            scores[head] += multiply(
                query[:, head],
                key[:, of_key],
                directions[:, of_key],
                strengths[:, of_key],
            ) / np.sqrt(WIDTH)
        if layer.use_forget_gate:
            gates = states @ layer.forget_dense.kernel.numpy()
            gates = np.log(expit(gates + layer.forget_dense.bias.numpy()))
            gates /= np.sqrt(WIDTH) if layer.scale_gates else 1
            for i, j in zip(*np.tril_indices(len(kept), -1), strict=True):
                scores[:, i, j] += gates[j + 1 : i + 1].sum(0)
        scores = np.where(np.tri(len(kept), dtype=bool), scores, -np.inf)
        np.testing.assert_allclose(
            np.asarray(weights)[example][:, kept][:, :, kept],
            softmax(scores, axis=-1),
            atol=2e-5,
        )


@functools.cache
def long_paths():
    """Tensors of blocks that the last one does not fill, with products."""
    tokens, width = 150, 8
    query, key, directions = (
        RANDOM.normal(size=(tokens, width)).astype("float32") for _ in range(3)
    )
    # Alike directions and large strengths, as of reflections, are the hardest.
    directions[40:] = directions[0] + 0.1 * directions[40:]
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    strengths = 2 * expit(RANDOM.normal(size=tokens) + 3).astype("float32")
    products = multiply(query, key, directions, strengths)
    tensors = [
        ops.convert_to_tensor(each[None, :, None], "float32")
        for each in (query, key, directions, strengths[:, None])
    ]
    return tensors, products


def compute_products(query, key, directions, strengths, indices):
    solved = solve_blocks(key, directions, strengths)
    return multiply_along_paths(query, key, solved, indices)


@pytest.mark.parametrize("length", ["eager", "known", "unknown"])
def test_blocks_of_a_long_sequence_are_exact(length, monkeypatch):
    tensors, expected = long_paths()
    indices = ops.arange(150, dtype="int32")
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
    lower = np.tri(150, dtype=bool)
    np.testing.assert_allclose(
        np.where(lower, products, 0), expected, atol=1e-4
    )
    # The last queries only.
    last = compute(tensors[0][:, 130:], *tensors[1:], indices[130:])
    np.testing.assert_allclose(
        np.where(lower, products, 0)[130:],
        np.where(lower[130:], last[0, 0], 0),
        atol=1e-4,
    )


def test_gradients_are_those_of_finite_differences():
    layer = make(use_forget_gate=True)
    factors = RANDOM.normal(size=(2, TOKENS, 12)).astype("float32")

    @tf.function(jit_compile=True)
    def compute():
        with tf.GradientTape() as tape:
            output = layer(STATES, STATES, use_causal_mask=True, training=True)
            total = tf.reduce_sum(output * factors)
        return total, tape.gradient(total, layer.trainable_variables)

    gradients = compute()[1]
    for variable, gradient in zip(
        layer.trainable_variables, gradients, strict=True
    ):
        step = RANDOM.normal(size=variable.shape)
        step *= 1e-3 / np.linalg.norm(step)
        values = variable.numpy()
        totals = []
        for sign in (1, -1):
            variable.assign(values + sign * step)
            totals.append(float(compute()[0]))
        variable.assign(values)
        np.testing.assert_allclose(
            (totals[0] - totals[1]) / 2,
            np.sum(gradient * step),
            rtol=0.02,
            atol=5e-5,
        )


@keras.saving.register_keras_serializable(package="tests")
class PaTHAttentionWithGates(PaTHAttention):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **{"use_forget_gate": True, **kwargs})


@pytest.mark.parametrize(
    ("attention", "groups"),
    [
        pytest.param(PaTHAttention, None, marks=pytest.mark.product),
        (PaTHAttentionWithGates, 1),
    ],
)
def test_generation_and_chunks_are_the_full_pass(attention, groups):
    keras.utils.set_random_seed(0)
    model = TransformerDecoder(
        vocabulary_size=9,
        output_size=9,
        num_layers=2,
        num_heads=2,
        model_dim=16,
        num_key_value_heads=groups,
        attention=attention,
    )
    ids = np.random.default_rng(0).integers(0, 9, (2, 5))
    assert_generation_is_the_full_pass(model, ids)
    assert_generation_is_the_full_pass(model, ids, [3, 5])
    whole = np.random.default_rng(1).integers(0, 9, (2, 9))
    assert_chunks_change_nothing(model, whole)


def test_it_is_causal():
    with pytest.raises(ValueError, match="PaTHAttention is for causal"):
        PaTHAttention(2, 4)(STATES, STATES)


def test_wider_keys_are_refused():
    with pytest.raises(ValueError, match="no use for encoding=PoPE, whose"):
        PaTHAttention(2, 4, encoding=PoPE())


def test_gates_that_do_not_exist_are_not_scaled():
    with pytest.raises(ValueError, match="set use_forget_gate=True too"):
        PaTHAttention(2, 4, scale_gates=True)


def test_config_rebuilds_it():
    assert_config_round_trip(
        PaTHAttention(2, 4, use_forget_gate=True, scale_gates=True)
    )
