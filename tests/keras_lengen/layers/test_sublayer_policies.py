"""Quantized layers and models are saved as they are."""

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
from tests.covering import cover
from tests.keras_lengen.models import small
from tests.loading import compute

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*quantize:UserWarning"),
    # Keras has no float8 for embeddings, and leaves them as they are.
    pytest.mark.filterwarnings("ignore:Invalid quantization mode:UserWarning"),
]

FEATURES = np.random.default_rng(0).normal(size=(2, 6, 16)).astype("float32")


def of_features(layer, *, times):
    symbol = keras.Input((None, FEATURES.shape[-1]))
    return keras.Model(symbol, layer(*[symbol] * times))


def attentions(dtype):
    """Several layers, whose policies must not be mistaken for each other."""
    x = symbol = keras.Input((None, FEATURES.shape[-1]))
    for width in (8, 6, 4):
        x = MultiHeadAttention(2, width, encoding=ALiBi(), dtype=dtype)(x, x)
    return keras.Model(symbol, x)


MODELS = {
    "attentions": attentions,
    "geometric attention": lambda dtype: of_features(
        GeometricAttention(2, 8, dtype=dtype), times=2
    ),
    "block": lambda dtype: of_features(
        TransformerBlock(num_heads=2, encoding=RoPE(), dtype=dtype), times=1
    ),
    "decoder": lambda dtype: small.decoder(
        RoPE(), output_size=None, tie_embeddings=True, dtype=dtype
    ),
    "looped": lambda dtype: small.looped_decoder(
        RoPE(), num_layers=2, output_size=None, dtype=dtype
    ),
    "encoder-decoder": lambda dtype: small.encoder_decoder(RoPE(), dtype=dtype),
}


CONFIGS = {
    "int8": lambda: keras.quantizers.Int8QuantizationConfig(),
    "weights": lambda: keras.quantizers.Int8QuantizationConfig(
        activation_quantizer=None
    ),
    "int4": lambda: keras.quantizers.Int4QuantizationConfig(block_size=8),
    "channels": lambda: keras.quantizers.Int4QuantizationConfig(
        block_size=None,
        activation_quantizer=keras.quantizers.AbsMaxQuantizer(axis=-1),
    ),
    "float8": lambda: keras.quantizers.Float8QuantizationConfig(),
}


@pytest.mark.product
@pytest.mark.parametrize(
    ("name", "config", "dtype"),
    cover(list(MODELS), list(CONFIGS), ["float32", "mixed_bfloat16"])[1::4],
)
def test_a_quantized_model_is_saved_and_loaded_and_saved(
    name, config, dtype, tmp_path, loading
):
    model = MODELS[name](dtype)
    of_tokens = isinstance(model, TokenModel)
    ids = small.token_ids()
    batch = small.inputs(model, ids) if of_tokens else FEATURES
    (before,) = compute(model, batch)
    model.quantize(config=CONFIGS[config]())
    (expected,) = compute(model, batch)
    assert np.any(before != expected)
    loading.check(model, tmp_path / "first.keras", batch)
    model = keras.saving.load_model(tmp_path / "first.keras")
    loading.check(model, tmp_path / "second.keras", batch)
    np.testing.assert_allclose(compute(model, batch), [expected], atol=1e-6)


def test_a_model_that_is_not_quantized_has_one_policy():
    config = small.encoder(RoPE()).get_config()
    assert config["dtype"]["class_name"] == "DTypePolicy"
