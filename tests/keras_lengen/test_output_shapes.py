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
from tests.keras_lengen.layers.positions import table as samplers
from tests.keras_lengen.models import small

QUERY, VALUE = np.ones((2, 6, 16), "float32"), np.ones((2, 9, 12), "float32")


class Shape:
    """A shape, as one leaf; `None` is any size."""

    def __init__(self, sizes):
        self.sizes = tuple(sizes)

    def __eq__(self, other):
        return len(self.sizes) == len(other) and all(
            size in (None, got)
            for size, got in zip(self.sizes, other, strict=True)
        )


def assert_shapes(expected, found):
    expected = keras.tree.map_shape_structure(Shape, expected)
    found = keras.tree.map_structure(lambda array: tuple(array.shape), found)
    keras.tree.assert_same_structure(
        expected, keras.tree.map_shape_structure(Shape, found)
    )
    shapes = keras.tree.map_shape_structure(Shape, found)
    for shape, got in zip(
        keras.tree.flatten(expected), keras.tree.flatten(shapes), strict=True
    ):
        assert shape == got.sizes


@pytest.mark.parametrize("variant", encodings.VARIANTS)
def test_encodings(variant):
    encoding = encodings.make_built(variant)
    tensors = encodings.random_inputs(encoding.stage)
    for given in (tensors[:1], tensors):
        shapes = [tensor.shape for tensor in given]
        expected = encoding.compute_output_shape(*shapes)
        assert_shapes(expected, encoding(*given))


@pytest.mark.parametrize("variant", samplers.VARIANTS)
def test_samplers(variant):
    sampler, lengths = samplers.make(variant), np.array([3, 6])
    for shapes, given in (((), {}), (((2,),), {"lengths": lengths})):
        expected = sampler.compute_output_shape((2, 6), *shapes)
        assert_shapes(expected, sampler(np.ones((2, 6)), **given))


@pytest.mark.parametrize(
    ("layer", "value"),
    [
        (MultiHeadAttention(2, 8, encoding=ALiBi()), QUERY),
        (MultiHeadAttention(2, 8, value_dim=3, output_shape=5), QUERY),
        (MultiHeadAttention(2, 8, output_shape=(2, 3)), VALUE),
        (MultiHeadAttention(2, 8), VALUE),
        (GeometricAttention(2, 8), QUERY),
    ],
    ids=["self", "other widths", "two axes", "others", "geometric"],
)
def test_attention(layer, value):
    expected = layer.compute_output_shape(QUERY.shape, value.shape)
    assert_shapes(expected, layer(QUERY, value))


def test_blocks():
    layer = TransformerBlock(num_heads=2, encoding=RoPE())
    assert_shapes(layer.compute_output_shape(QUERY.shape), layer(QUERY))


@pytest.mark.parametrize("name", [*small.MODELS, "features"])
def test_models(name):
    changes = {"output_size": None} if name == "features" else {}
    model = small.MODELS.get(name, small.encoder)(RoPE(), **changes)
    batch = small.inputs(model, small.token_ids())
    shapes = {name: array.shape for name, array in batch.items()}
    assert_shapes(model.compute_output_shape(shapes), model(batch))
