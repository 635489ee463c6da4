import functools

import keras
import numpy as np
import pytest

from keras_lengen.layers import (
    LearnedEncoding,
    RandomizedRoPE,
    RelativeEncoding,
    RoPE,
    T5Bias,
)
from keras_lengen.models import (
    EncoderDecoder,
    TransformerDecoder,
    TransformerEncoder,
    presets,
)
from tests.keras_lengen.layers.arguments import assert_config_round_trip
from tests.keras_lengen.models.small import token_ids, with_random_weights

MODELS = {
    "ruoss": TransformerEncoder,
    "enwik8": TransformerDecoder,
    "imagenet": EncoderDecoder,
    "t5_decoder": TransformerDecoder,
    "gpt2": TransformerDecoder,
    "llama": TransformerDecoder,
    "local_global": TransformerDecoder,
    "swan": TransformerDecoder,
}
WITHOUT_DRAWS = {
    "embeddings_initializer": "zeros",
    "kernel_initializer": "zeros",
}


def make(name, **changes):
    return MODELS[name](**{**presets[name], **changes})


def make_small(name, **changes):
    sizes = {
        "vocabulary_size": 11,
        "num_layers": 2,
        "num_heads": 4,
        "model_dim": 16,
        "feedforward_dim": 24,
    }
    if name == "ruoss":
        sizes["output_size"] = 3
    if "num_key_value_heads" in presets[name]:
        sizes["num_key_value_heads"] = 2
    return make(name, **{**sizes, **changes})


def test_every_preset_has_a_model():
    assert presets.keys() == MODELS.keys()


ENCODER_BLOCK = 4 * 256**2 + 2 * 4 * 256**2 + 5 * 256 + 4 * 256
"""Parameters of a block of width 256: attention, feed-forward and two norms."""
PARAMETERS = [
    (
        "ruoss",
        {"vocabulary_size": 3, "output_size": 2, "encoding": encoding},
        count,
    )
    for encoding, count in (
        (RoPE(), 248_962),
        (RandomizedRoPE(), 248_962),
        (RelativeEncoding(), 270_082),
    )
] + [
    # Blocks, embeddings and head.
    ("enwik8", {}, 6_309_888 + 65_536 + 65_792),
    (
        "imagenet",
        {},
        8 * ENCODER_BLOCK
        + 256**2
        + 8 * (ENCODER_BLOCK + 4 * 256**2 + 2 * 256)
        + 256
        + 257 * 1000,
    ),
    ("t5_decoder", {"vocabulary_size": 32_128, **WITHOUT_DRAWS}, 109_628_160),
    (
        "gpt2",
        {"encoding": LearnedEncoding(max_position=1024), **WITHOUT_DRAWS},
        124_439_808,
    ),
]


@pytest.mark.parametrize(("name", "changes", "parameters"), PARAMETERS)
def test_parameters(name, changes, parameters):
    assert make(name, **changes).count_params() == parameters


def test_parameters_of_llama():
    """Of one layer of the model with 8,030,261,248 parameters."""
    width, hidden, tokens = 4096, 14336, 128256
    layer = 2 * width**2 + 2 * width * 1024 + 3 * width * hidden + 2 * width
    assert 32 * layer + 2 * tokens * width + width == 8_030_261_248
    model = make_small(
        "llama",
        num_heads=32,
        num_key_value_heads=8,
        model_dim=128,
        feedforward_dim=448,
        num_layers=1,
    )
    layer = 2 * 128**2 + 2 * 128 * 32 + 3 * 128 * 448 + 2 * 128
    assert model.count_params() == layer + 2 * 11 * 128 + 128


@pytest.mark.parametrize("name", presets)
def test_config_rebuilds_it(name):
    assert_config_round_trip(make_small(name))


def test_a_saved_model_is_the_same(tmp_path, loading):
    """With the activation of this library."""
    loading.check(make_small("gpt2"), tmp_path / "model.keras", token_ids())


@pytest.mark.parametrize("name", presets)
def test_one_seed_gives_one_model_and_another_another(name):
    kernels = []
    for seed in (1, 1, 2):
        keras.utils.set_random_seed(seed)
        model = make_small(name, num_layers=1)
        kernels.append([w for w in model.get_weights() if np.ptp(w) > 0])
    for first, same, other in zip(*kernels, strict=True):
        np.testing.assert_array_equal(first, same)
        assert not np.array_equal(first, other)


def test_weights_of_t5_start_as_in_mesh_tensorflow():
    width, heads, hidden = 64, 4, 256
    model = make(
        "t5_decoder",
        vocabulary_size=128,
        num_layers=1,
        num_heads=heads,
        model_dim=width,
        feedforward_dim=hidden,
    )
    (block,) = model.blocks
    attention = block.attention_layer
    head_width = width // heads
    for kernel, deviation in (
        (model.embedding.embeddings, 1),
        (attention.query_dense.kernel, (width * head_width) ** -0.5),
        (attention.key_dense.kernel, width**-0.5),
        (attention.value_dense.kernel, width**-0.5),
        (attention.output_dense.kernel, (heads * head_width) ** -0.5),
        (block.hidden_dense.kernel, width**-0.5),
        (block.output_dense.kernel, hidden**-0.5),
    ):
        # Of at least 4096 draws: four standard errors are 0.045.
        assert abs(np.std(kernel) / deviation - 1) < 0.045
        # Not cut off at two deviations.
        assert np.abs(kernel).max() > 3 * deviation


def test_weights_of_gpt2_start_small():
    model = make_small("gpt2", model_dim=64, feedforward_dim=256)
    for weight in model.get_weights():
        if weight.size >= 4096:
            assert abs(np.std(weight) / 0.02 - 1) < 0.045


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def causal_attention(query, key, value, num_heads, bias=0):
    """Attention of `(B, T, M)` with scores that are not scaled."""

    def heads(x):
        return np.stack(np.split(x, num_heads, axis=-1), axis=1)

    scores = heads(query) @ heads(key).swapaxes(-1, -2) + bias
    later = np.triu(np.ones(scores.shape[-2:], "bool"), k=1)
    output = softmax(np.where(later, -np.inf, scores)) @ heads(value)
    return np.concatenate([*output.swapaxes(0, 1)], axis=-1)


def projections(attention):
    return [
        [np.asarray(weight) for weight in dense.weights]
        for dense in (
            attention.query_dense,
            attention.key_dense,
            attention.value_dense,
            attention.output_dense,
        )
    ]


def gpt2(model, ids):
    """Logits as in the code of Radford et al., 2019."""

    def norm(x, layer):
        gain, offset = (np.asarray(weight) for weight in layer.weights)
        mean = x.mean(axis=-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
        return gain * (x - mean) / np.sqrt(variance + 1e-5) + offset

    def linear(x, weights):
        kernel, bias = (np.asarray(weight) for weight in weights)
        return x @ kernel + bias

    def gelu(x):
        inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + np.tanh(inner))

    tokens = np.asarray(model.embedding.embeddings)
    (positions,) = map(np.asarray, model.encoding.weights)
    x = tokens[ids] + positions[: ids.shape[1]]
    for block in model.blocks:
        query, key, value, output = projections(block.attention_layer)
        normed = norm(x, block.attention_norm)
        head_width = x.shape[-1] // model.num_heads
        attended = causal_attention(
            linear(normed, query) / np.sqrt(head_width),
            linear(normed, key),
            linear(normed, value),
            model.num_heads,
        )
        x = x + linear(attended, output)
        hidden = linear(
            norm(x, block.feedforward_norm), block.hidden_dense.weights
        )
        x = x + linear(gelu(hidden), block.output_dense.weights)
    return norm(x, model.final_norm) @ tokens.T


def test_gpt2_computes_what_its_code_does():
    model = with_random_weights(
        make_small("gpt2", encoding=LearnedEncoding(max_position=9))
    )
    ids = token_ids()
    np.testing.assert_allclose(model(ids), gpt2(model, ids), atol=1e-4)


def rms_norm(x, layer, epsilon):
    (gain,) = map(np.asarray, layer.weights)
    mean = (x**2).mean(axis=-1, keepdims=True)
    return gain * x / np.sqrt(mean + epsilon)


def t5(model, ids):
    """Logits as in the code of Raffel et al., 2020, without an encoder."""

    norm = functools.partial(rms_norm, epsilon=1e-6)
    tokens = np.asarray(model.embedding.embeddings)
    (by_distance,) = map(np.asarray, model.encoding.weights)
    numbers = np.arange(ids.shape[1])
    distances = np.maximum(numbers[:, None] - numbers, 0)
    x = tokens[ids]
    for block in model.blocks:
        (query,), (key,), (value,), (output,) = projections(
            block.attention_layer
        )
        normed = norm(x, block.attention_norm)
        attended = causal_attention(
            normed @ query,
            normed @ key,
            normed @ value,
            model.num_heads,
            bias=np.moveaxis(by_distance[distances], -1, 0),
        )
        x = x + attended @ output
        (hidden,) = block.hidden_dense.get_weights()
        (returned,) = block.output_dense.get_weights()
        normed = norm(x, block.feedforward_norm)
        x = x + np.maximum(normed @ hidden, 0) @ returned
    x = norm(x, model.final_norm)
    return x * x.shape[-1] ** -0.5 @ tokens.T


def llama(model, ids):
    """Logits as in the code of Touvron et al., 2023, in halves."""

    norm = functools.partial(rms_norm, epsilon=1e-5)

    def rotate(x, heads):
        x = x.reshape(*x.shape[:2], heads, -1)
        half = x.shape[-1] // 2
        frequencies = 500_000 ** (-np.arange(half) / half)
        angles = np.arange(x.shape[1])[:, None, None] * frequencies
        real, imaginary = x[..., :half], x[..., half:]
        turned = (
            real * np.cos(angles) - imaginary * np.sin(angles),
            imaginary * np.cos(angles) + real * np.sin(angles),
        )
        return np.concatenate(turned, axis=-1)

    x = np.asarray(model.embedding.embeddings)[ids]
    for block in model.blocks:
        (query,), (key,), (value,), (output,) = projections(
            block.attention_layer
        )
        normed = norm(x, block.attention_norm)
        queries, keys = rotate(normed @ query, 4), rotate(normed @ key, 2)
        values = (normed @ value).reshape(*ids.shape, 2, -1)
        # Each head of keys and values serves two heads of queries.
        attended = causal_attention(
            queries.reshape(*ids.shape, -1) / np.sqrt(queries.shape[-1]),
            keys.repeat(2, axis=2).reshape(*ids.shape, -1),
            values.repeat(2, axis=2).reshape(*ids.shape, -1),
            num_heads=4,
        )
        x = x + attended @ output
        normed = norm(x, block.feedforward_norm)
        (gate,), (up,), (down,) = (
            dense.get_weights()
            for dense in (
                block.gate_dense,
                block.hidden_dense,
                block.output_dense,
            )
        )
        gate = normed @ gate
        x = x + (gate / (1 + np.exp(-gate)) * (normed @ up)) @ down
    x = norm(x, model.final_norm)
    if model.tie_embeddings:
        return x @ np.asarray(model.embedding.embeddings).T
    (head,) = model.head.get_weights()
    return x @ head


@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
def test_llama_computes_what_its_code_does(tied):
    changes = {"num_key_value_heads": 2, "tie_embeddings": tied}
    model = with_random_weights(make_small("llama", **changes))
    assert all("bias" not in weight.path for weight in model.weights)
    ids = token_ids()
    np.testing.assert_allclose(model(ids), llama(model, ids), atol=1e-4)


def test_t5_computes_what_its_code_does():
    model = with_random_weights(
        make_small("t5_decoder", encoding=T5Bias(), logit_scale=16**-0.5)
    )
    assert presets["t5_decoder"]["logit_scale"] == 768**-0.5
    ids = token_ids()
    np.testing.assert_allclose(model(ids), t5(model, ids), atol=1e-4)


NEAR, FAR = ("RoPE", 10_000, 1024), ("RoPE", 1_000_000, None)
LOCAL, FREE = ("RoPE", 10_000, 512), ("NoPE", None, None)
BY_LAYER = {
    "local_global": [*[NEAR] * 5, FAR, *[NEAR] * 5, FAR, NEAR],
    "swan": [FREE, LOCAL, LOCAL, LOCAL] * 2 + [FREE],
}


@pytest.mark.parametrize("name", BY_LAYER)
def test_layers_of_gemma_3_and_swan(name):
    """Their encodings, longest wavelengths and windows."""
    model = make_small(name, num_layers=len(BY_LAYER[name]))
    layers = [block.attention_layer for block in model.blocks]
    assert BY_LAYER[name] == [
        (
            type(layer.encoding).__name__,
            getattr(layer.encoding, "max_wavelength", None),
            layer.sliding_window,
        )
        for layer in layers
    ]
    is_gemma = name == "local_global"
    assert layers[0].use_query_key_norm == is_gemma
    assert layers[0].norm_epsilon == (1e-6 if is_gemma else 1e-5)
    # All layers share positions.
    assert not model.places_by_layer()


def test_swan_sharpens_the_layers_that_see_more_than_in_training():
    """By `log(n) / log(train_length)`, in evaluation only."""
    model = with_random_weights(
        make_small(
            "swan", num_layers=2, train_length=3, sliding_window=[None, 2]
        )
    )
    free, near = (block.attention_layer for block in model.blocks)
    x = np.random.default_rng(0).normal(size=(1, 6, 16)).astype("float32")
    weights = {}
    for layer in (free, near):
        for training in (False, True):
            _, weights[layer, training] = layer(
                x,
                x,
                use_causal_mask=True,
                return_attention_scores=True,
                training=training,
            )
    np.testing.assert_array_equal(weights[near, False], weights[near, True])
    seen = np.arange(1, 7)[:, None]
    factor = np.maximum(np.log(seen) / np.log(3), 1)
    sharper = np.asarray(weights[free, True]) ** factor
    sharper /= sharper.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(weights[free, False], sharper, atol=1e-5)
