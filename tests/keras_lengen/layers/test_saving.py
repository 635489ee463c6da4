"""Functional models of layers, saved, loaded and copied."""

import keras
import numpy as np
import pytest

from keras_lengen.layers import (
    FIRE,
    MultiHeadAttention,
    RandomizedPositions,
    RandomizedRoPE,
    RoPE,
    T5Bias,
    TransformerBlock,
)

FEATURES = np.random.default_rng(0).normal(size=(2, 5, 16)).astype("float32")
WIDE = {"max_position": 64, "seed": 3}


def make_model(layers):
    """A model that applies functions of a tensor one after the other."""
    x = symbol = keras.Input((None, FEATURES.shape[-1]))
    for layer in layers:
        x = layer(x)
    return keras.Model(symbol, x)


def attend(encoding):
    layer = MultiHeadAttention(2, 8, encoding=encoding)
    return lambda x: layer(x, x)


def share_encoding():
    encoding = T5Bias()
    return [attend(encoding), attend(encoding)]


def share_between_blocks():
    encoding = RandomizedRoPE(**WIDE)
    return [TransformerBlock(2, encoding=encoding) for _ in range(2)]


def share_sampler():
    sampler = RandomizedPositions(**WIDE)
    return [attend(RoPE(sampler=sampler)), attend(FIRE(sampler=sampler))]


def share_with_a_layer():
    encoding = FIRE()

    def apply(x):
        heads = keras.layers.Reshape((-1, 2, 8))(x)
        return x + keras.ops.mean(encoding(heads, heads))

    return [apply, attend(encoding)]


@pytest.mark.product
@pytest.mark.parametrize(
    "share",
    [share_encoding, share_between_blocks, share_sampler, share_with_a_layer],
)
def test_layers_share_an_object_after_loading(share, tmp_path, loading):
    model = make_model(share())
    loading.check(model, tmp_path / "model.keras", FEATURES)
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert len(loaded.variables) == len(model.variables)
    with pytest.raises(ValueError, match="several layers share one"):
        keras.models.clone_model(model)


def test_arguments_of_a_layer_may_be_one_object(tmp_path, loading):
    encoding = T5Bias()
    block = TransformerBlock(
        2, encoding=encoding, cross_attention=True, cross_encoding=encoding
    )
    model = make_model([lambda x: block(x, memory=x)])
    loading.check(model, tmp_path / "model.keras", FEATURES)
    clone = keras.models.clone_model(model)
    assert len(clone.weights) == len(model.weights)
