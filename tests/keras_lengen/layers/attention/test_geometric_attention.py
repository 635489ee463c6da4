import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import GeometricAttention, NoPE, RoPE
from keras_lengen.models import TransformerEncoder
from tests.keras_lengen.layers.arguments import assert_config_round_trip
from tests.products import product

STATES = np.random.default_rng(0).normal(size=(2, 7, 12)).astype("float32")

MATCHES = [
    [0, 0.5, 0.25, 0.8],
    [0.1, 0, 0.6, 0.3],
    [0.9, 0.2, 0, 0.4],
    [0.5, 0.5, 0.5, 0],
]
WEIGHTS = [
    [0, 0.5, 0.125, 0.3],
    [0.04, 0, 0.6, 0.108],
    [0.432, 0.12, 0, 0.4],
    [0.125, 0.25, 0.5, 0],
]


def nearest_matches(matches):
    """The weights of `(T, T)` probabilities, key by key."""
    tokens = len(matches)
    weights = np.zeros((tokens, tokens))
    for i in range(tokens):
        order = sorted((abs(j - i), j < i, j) for j in range(tokens) if j != i)
        missed = 1.0
        for *_, j in order:
            weights[i, j] = missed * matches[i][j]
            missed *= 1 - matches[i][j]
    return weights


def attention(**arguments):
    layer = GeometricAttention(3, 4, **arguments)
    layer.build(STATES.shape, STATES.shape)
    generator = np.random.default_rng(1)
    for weight in layer.weights:
        weight.assign(generator.normal(size=weight.shape))
    return layer


def test_published_weights():
    np.testing.assert_allclose(nearest_matches(MATCHES), WEIGHTS, atol=1e-9)
    logits = np.log(np.array(MATCHES) + 1e-30) - np.log1p(-np.array(MATCHES))
    found = attention(normalize=False)._compute_weights(
        keras.ops.convert_to_tensor(logits[None, None].astype("float32")),
        None,
        keras.ops.arange(4),
    )
    np.testing.assert_allclose(found[0, 0], WEIGHTS, atol=1e-6)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("masked", [None, "padding", "causal"])
def test_output_by_the_definition(normalize, masked):
    layer = attention(normalize=normalize, use_bias=False)
    arguments, allowed = {}, np.ones((2, 7, 7), bool)
    if masked == "padding":
        arguments["value_mask"] = np.arange(7) < np.array([[4], [7]])
        allowed = allowed & arguments["value_mask"][:, None]
    if masked == "causal":
        arguments["use_causal_mask"] = True
        allowed = allowed & np.tri(7, dtype=bool)
    output, weights = layer(
        STATES, STATES, return_attention_scores=True, **arguments
    )

    def heads(dense):
        return (STATES @ dense.kernel.numpy()).reshape(2, 7, 3, 4)

    query, key, value = map(
        heads, (layer.query_dense, layer.key_dense, layer.value_dense)
    )
    query = query + layer.content_bias.numpy()
    alpha, beta, gamma = map(float, (layer.alpha, layer.beta, layer.gamma))
    directions = STATES @ layer.direction_dense.kernel.numpy()
    directions = directions + layer.direction_dense.bias.numpy()
    expected = np.zeros((2, 7, 3, 4))
    for example in range(2):
        for head in range(3):
            logits = np.zeros((7, 7))
            for i in range(7):
                for j in range(7):
                    product = query[example, i, head] @ key[example, j, head]
                    direction = directions[example, i, head + 3 * (j > i)]
                    logits[i, j] = alpha * product + beta * direction + gamma
            matches = allowed[example] / (1 + np.exp(-logits))
            rows = nearest_matches(matches)
            if normalize:
                rows = rows / np.maximum(rows.sum(-1, keepdims=True), 1e-9)
            np.testing.assert_allclose(weights[example, head], rows, atol=1e-5)
            expected[example, :, head] = rows @ value[example, :, head]
    expected = expected.reshape(2, 7, 12) @ layer.output_dense.kernel.numpy()
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-3)


def test_extreme_scores_of_a_long_sequence_lose_no_precision():
    tokens = 2000
    generator = np.random.default_rng(0)
    scores = generator.normal(-3, 3, size=(tokens, tokens))
    # One key of ten matches for certain or not at all. Sums over all keys are
    # so large that float32 would lose the others' part of them.
    certain = generator.choice([-1000, 1000], size=scores.shape)
    scores = np.where(generator.random(scores.shape) < 0.1, certain, scores)
    scores = scores.astype("float32")
    layer = GeometricAttention(1, 4, normalize=False)
    layer.build((1, tokens, 4), (1, tokens, 4))
    index = np.arange(tokens)
    found = layer._compute_weights(
        keras.ops.convert_to_tensor(scores[None, None]),
        None,
        keras.ops.convert_to_tensor(index.astype("int32")),
    )
    expected = np.zeros((tokens, tokens))
    for i, logits in enumerate(scores.astype("float64")):
        nearest_first = np.lexsort((index < i, abs(index - i)))[1:]
        misses = np.exp(-np.logaddexp(0, logits[nearest_first]))
        missed = np.cumprod([1.0, *misses[:-1]])
        expected[i, nearest_first] = missed * (1 - misses)
    large = expected > 1e-6
    assert large.mean() > 0.005
    np.testing.assert_allclose(
        np.asarray(found)[0, 0][large], expected[large], rtol=1e-4
    )


@pytest.mark.parametrize("arguments", [{}, {"num_key_value_heads": 1}], ids=str)
@pytest.mark.parametrize("chunks", [(1,) * 7, (2, 1, 4)], ids=str)
def test_a_cache_changes_nothing(arguments, chunks):
    layer = attention(**arguments)
    full = layer(STATES, STATES, use_causal_mask=True)
    cache, start = layer.make_cache(2, 7), 0
    for tokens in chunks:
        chunk = STATES[:, start : start + tokens]
        output, cache = layer(
            chunk,
            chunk,
            cache=cache,
            cache_update_index=start,
            use_causal_mask=True,
        )
        np.testing.assert_allclose(
            output, full[:, start : start + tokens], rtol=1e-4, atol=1e-4
        )
        start += tokens


def test_it_starts_as_published():
    layer = GeometricAttention(3, 4)
    layer.build(STATES.shape, STATES.shape)
    assert (float(layer.alpha), float(layer.beta)) == (0.5, 1.0)
    assert float(layer.gamma) == 0.0
    assert not np.any(layer.content_bias)
    # alpha, beta, gamma; c; and a map to two numbers a head.
    plain = 4 * (12 * 12 + 12)
    assert layer.count_params() == plain + 3 + 12 + (12 * 6 + 6)


def test_far_matches_have_finite_gradients():
    layer, states = attention(), 100 * STATES
    with tf.GradientTape() as tape:
        loss = keras.ops.sum(layer(states, states) ** 2)
    gradients = tape.gradient(loss, layer.trainable_variables)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_config_and_refusals():
    assert_config_round_trip(attention(normalize=False, encoding=NoPE()))
    with pytest.raises(ValueError, match="no use for encoding=RoPE"):
        GeometricAttention(3, 4, encoding=RoPE())
    with pytest.raises(ValueError, match="must be the same tensor"):
        attention()(STATES, STATES + 1)


PROGRAMS = {
    "eager": {"run_eagerly": True},
    "graph": {"jit_compile": False},
    "xla": {"jit_compile": True},
}


@pytest.mark.parametrize("program", product(PROGRAMS, keep=["eager"]))
def test_an_encoder_learns_and_is_saved(tmp_path, program, loading):
    model = TransformerEncoder(
        vocabulary_size=5,
        output_size=5,
        num_layers=2,
        num_heads=2,
        model_dim=8,
        attention=GeometricAttention,
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, **PROGRAMS[program])
    ids = np.random.default_rng(0).integers(0, 5, (8, 6))
    before = model.get_weights()
    model.fit(ids, ids, epochs=2, verbose=0)
    moved = [
        not np.array_equal(old, new)
        for old, new in zip(before, model.get_weights(), strict=True)
    ]
    assert all(moved)
    loading.check(model, tmp_path / "model.keras", ids)
