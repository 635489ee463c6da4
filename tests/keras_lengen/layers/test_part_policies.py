"""Quantized layers and models are saved as they are."""

import itertools

import keras
import numpy as np
import pytest

from keras_lengen.layers import (
    ALiBi,
    GeometricAttention,
    MultiHeadAttention,
    RoPE,
    TransformerBlock,
)
from keras_lengen.models.base import TokenModel
from tests.keras_lengen.models.small import (
    decoder,
    encoder,
    encoder_decoder,
    inputs,
    token_ids,
)
from tests.products import mark_slow

pytestmark = pytest.mark.filterwarnings("ignore:.*quantize:UserWarning")

FEATURES = np.random.default_rng(0).normal(size=(2, 6, 16)).astype("float32")


def of_features(layer, *, times):
    symbol = keras.Input((None, FEATURES.shape[-1]))
    return keras.Model(symbol, layer(*[symbol] * times))


MODELS = {
    "attention": lambda dtype: of_features(
        MultiHeadAttention(2, 8, encoding=ALiBi(), dtype=dtype), times=2
    ),
    "geometric attention": lambda dtype: of_features(
        GeometricAttention(2, 8, dtype=dtype), times=2
    ),
    "block": lambda dtype: of_features(
        TransformerBlock(num_heads=2, encoding=RoPE(), dtype=dtype), times=1
    ),
    "encoder": lambda dtype: encoder(RoPE(), dtype=dtype),
    "decoder": lambda dtype: decoder(
        RoPE(), output_size=None, tie_embeddings=True, dtype=dtype
    ),
    "encoder-decoder": lambda dtype: encoder_decoder(RoPE(), dtype=dtype),
}


def computed(model):
    of_tokens = isinstance(model, TokenModel)
    batch = inputs(model, token_ids()) if of_tokens else FEATURES
    return keras.ops.convert_to_numpy(model(batch)).astype("float32")


@pytest.mark.product
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *itertools.product(MODELS, ["float32"]),
        *mark_slow(
            itertools.product(MODELS, ["mixed_bfloat16"]),
            ["encoder", "encoder-decoder"],
        ),
    ],
)
def test_a_quantized_model_is_saved_and_loaded_and_saved(name, dtype, tmp_path):
    model = MODELS[name](dtype)
    before = computed(model)
    model.quantize("int8")
    expected = computed(model)
    assert np.any(before != expected)
    for path in (tmp_path / "first.keras", tmp_path / "second.keras"):
        model.save(path)
        model = keras.saving.load_model(path)
        np.testing.assert_array_equal(computed(model), expected)


def test_a_model_that_is_not_quantized_has_one_policy():
    config = encoder(RoPE()).get_config()
    assert config["dtype"]["class_name"] == "DTypePolicy"
