"""Every layer and model says the shape of what it returns."""

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
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.layers.positions import table as positions
from tests.keras_lengen.models.small import (
    decoder,
    encoder,
    encoder_decoder,
    inputs,
    token_ids,
)
from tests.products import product

QUERY, VALUE = np.ones((2, 6, 16), "float32"), np.ones((2, 9, 12), "float32")


def assert_shapes(expected, results):
    """`None` is any size."""
    keras.tree.assert_same_structure(
        keras.tree.map_shape_structure(np.ones_like, expected), results
    )
    for shape, result in zip(
        keras.tree.flatten(keras.tree.map_shape_structure(_Shape, expected)),
        keras.tree.flatten(results),
        strict=True,
    ):
        assert len(shape.sizes) == len(result.shape)
        for size, got in zip(shape.sizes, result.shape, strict=True):
            assert size in (None, got)


class _Shape:
    """A shape, as one leaf."""

    def __init__(self, sizes):
        self.sizes = tuple(sizes)


@pytest.mark.parametrize("variant", encodings.VARIANTS)
@pytest.mark.parametrize("number", product([1, 2], keep=[2]))
def test_encodings(variant, number):
    encoding = encodings.make_built(variant)
    tensors = encodings.random_inputs(encoding.stage)[:number]
    shapes = [tensor.shape for tensor in tensors]
    assert_shapes(encoding.compute_output_shape(*shapes), encoding(*tensors))


@pytest.mark.parametrize("variant", positions.VARIANTS)
def test_samplers(variant):
    sampler = positions.make(variant)
    assert_shapes(
        sampler.compute_output_shape((2, 6)), sampler(np.ones((2, 6)))
    )
    lengths = np.array([3, 6])
    assert_shapes(
        sampler.compute_output_shape((2, 6), (2,)),
        sampler(np.ones((2, 6)), lengths=lengths),
    )


@pytest.mark.parametrize(
    ("layer", "value"),
    [
        (MultiHeadAttention(2, 8, encoding=ALiBi()), QUERY),
        (MultiHeadAttention(2, 8, value_dim=3, output_shape=5), QUERY),
        (MultiHeadAttention(2, 8, output_shape=(2, 3)), VALUE),
        (MultiHeadAttention(2, 8), VALUE),
        (GeometricAttention(2, 8), QUERY),
    ],
    ids=[
        "self-attention",
        "other widths",
        "two axes",
        "cross attention",
        "geometric",
    ],
)
def test_attention(layer, value):
    expected = layer.compute_output_shape(QUERY.shape, value.shape)
    assert_shapes(expected, layer(QUERY, value))


def test_blocks():
    layer = TransformerBlock(num_heads=2, encoding=RoPE())
    assert_shapes(layer.compute_output_shape(QUERY.shape), layer(QUERY))


@pytest.mark.parametrize(
    "model",
    [
        encoder(RoPE()),
        encoder(RoPE(), output_size=None),
        decoder(RoPE()),
        encoder_decoder(RoPE()),
    ],
    ids=["encoder", "features", "decoder", "encoder-decoder"],
)
def test_models(model):
    batch = inputs(model, token_ids())
    shapes = {name: array.shape for name, array in batch.items()}
    assert_shapes(model.compute_output_shape(shapes), model(batch))
    unknown = {name: (None, None) for name in batch}
    assert model.compute_output_shape(unknown)[:2] == (None, None)
