import functools

import numpy as np
import pytest

from keras_lengen.layers import LearnedEncoding, RelativeEncoding, RoPE, T5Bias
from keras_lengen.models import (
    EncoderDecoder,
    TransformerDecoder,
    TransformerEncoder,
    presets,
)
from tests.keras_lengen.layers.attention.oracle import project
from tests.keras_lengen.layers.encodings.turns import rotated
from tests.keras_lengen.layers.test_transformer import (
    feed_forward,
    layer_norm,
    rms_norm,
)
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


ENCODER_BLOCK = 4 * 256**2 + 2 * 4 * 256**2 + 5 * 256 + 4 * 256
"""Parameters of a block of width 256: attention, feed-forward and two norms."""
PARAMETERS = [
    (
        "ruoss",
        {"vocabulary_size": 3, "output_size": 2, "encoding": encoding},
        count,
    )
    for encoding, count in ((RoPE(), 248_962), (RelativeEncoding(), 270_082))
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
    # One layer, with a quarter of the heads for keys and values.
    (
        "llama",
        {
            **{"vocabulary_size": 11, "num_layers": 1, "num_heads": 32},
            **{"model_dim": 128, "feedforward_dim": 448},
        },
        2 * 128**2 + 2 * 128 * 32 + 3 * 128 * 448 + 3 * 128 + 2 * 11 * 128,
    ),
]


@pytest.mark.product
@pytest.mark.parametrize(("name", "changes", "parameters"), PARAMETERS)
def test_parameters(name, changes, parameters):
    assert make(name, **changes).count_params() == parameters


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
        (block.feedforward_layer.hidden_dense.kernel, width**-0.5),
        (block.feedforward_layer.output_dense.kernel, hidden**-0.5),
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


def normalize(x, layer, epsilon):
    """Layer normalization with two weights, or by the RMS with one."""
    gain, *offset = map(np.asarray, layer.weights)
    norm = layer_norm if offset else rms_norm
    return gain * norm(x, epsilon) + sum(offset)


def forward(
    model, ids, *, epsilon, activate, added=0, rotate=None, scale=1.0, bias=0.0
):
    """What the head gets in a causal decoder that normalizes first."""
    norm = functools.partial(normalize, epsilon=epsilon)
    width = model.model_dim // model.num_heads

    def split(x, dense):
        heads = project(dense, x).reshape(*ids.shape, -1, width)
        return np.moveaxis(heads, 2, 1)

    later = np.triu(np.ones((ids.shape[1],) * 2, "bool"), k=1)
    x = np.asarray(model.embedding.embeddings)[ids] + added
    for block in model.blocks:
        attention = block.attention_layer
        normed = norm(x, block.attention_norm)
        query = split(normed, attention.query_dense)
        key = split(normed, attention.key_dense)
        value = split(normed, attention.value_dense)
        if rotate is not None:
            query, key = rotate(query), rotate(key)
        # Each head of keys and values may serve several heads of queries.
        group = query.shape[1] // key.shape[1]
        key, value = key.repeat(group, axis=1), value.repeat(group, axis=1)
        scores = scale * query @ key.swapaxes(-1, -2) + bias
        weights = np.exp(np.where(later, -np.inf, scores))
        weights /= weights.sum(axis=-1, keepdims=True)
        attended = np.moveaxis(weights @ value, 1, 2).reshape(x.shape)
        x = x + project(attention.output_dense, attended)
        normed = norm(x, block.feedforward_norm)
        layer = block.feedforward_layer
        x = x + feed_forward(layer, normed, activate, layer.gated)
    return norm(x, model.final_norm)


IDS = token_ids()


def make_random(name, **changes):
    """A small model with weights that show, and its embeddings."""
    model = with_random_weights(make_small(name, **changes))
    return model, np.asarray(model.embedding.embeddings)


def test_gpt2_computes_what_its_code_does():
    """That of Radford et al., 2019."""

    def gelu(x):
        inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + np.tanh(inner))

    model, tokens = make_random(
        "gpt2", encoding=LearnedEncoding(max_position=9)
    )
    (positions,) = map(np.asarray, model.encoding.weights)
    x = forward(
        *(model, IDS),
        epsilon=1e-5,
        activate=gelu,
        added=positions[: IDS.shape[1]],
        scale=4**-0.5,
    )
    np.testing.assert_allclose(model(IDS), x @ tokens.T, atol=1e-4)


def test_t5_computes_what_its_code_does():
    """That of Raffel et al., 2020, without an encoder."""
    assert presets["t5_decoder"]["logit_scale"] == 768**-0.5
    model, tokens = make_random(
        "t5_decoder", encoding=T5Bias(), logit_scale=16**-0.5
    )
    (by_distance,) = map(np.asarray, model.encoding.weights)
    numbers = np.arange(IDS.shape[1])
    distances = np.maximum(numbers[:, None] - numbers, 0)
    x = forward(
        *(model, IDS),
        epsilon=1e-6,
        activate=lambda x: np.maximum(x, 0),
        bias=np.moveaxis(by_distance[distances], -1, 0),
    )
    np.testing.assert_allclose(model(IDS), x / 4 @ tokens.T, atol=1e-4)


@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
def test_llama_computes_what_its_code_does(tied):
    """That of Touvron et al., 2023, with features in halves."""

    def rotate(x):
        turned = np.empty_like(x)
        for index in np.ndindex(x.shape[:-1]):
            turned[index] = rotated(x[index], index[2], "halves", 4, 500_000)
        return turned

    model, tokens = make_random("llama", tie_embeddings=tied)
    assert all("bias" not in weight.path for weight in model.weights)
    x = forward(
        *(model, IDS),
        epsilon=1e-5,
        activate=lambda x: x / (1 + np.exp(-x)),
        rotate=rotate,
        scale=4**-0.5,
    )
    logits = x @ tokens.T if tied else project(model.head, x)
    np.testing.assert_allclose(model(IDS), logits, atol=1e-4)


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
    assert not model.positions_differ_by_layer()
