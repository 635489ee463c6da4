"""Samplers, blocks and models say the shapes of what they return."""

import numpy as np
import pytest

from keras_lengen.layers import RoPE, TransformerBlock
from tests.keras_lengen.layers.positions import table as samplers
from tests.keras_lengen.models import small


@pytest.mark.parametrize("name", samplers.ROWS)
def test_samplers(name):
    sampler = samplers.make(name)
    for shapes, given in (((), {}), (((2,),), {"lengths": np.array([3, 6])})):
        expected = sampler.compute_output_shape((2, 6), *shapes)
        found = sampler(np.ones((2, 6)), **given).shape
        assert tuple(expected) == tuple(found)


def test_blocks():
    layer = TransformerBlock(num_heads=2, encoding=RoPE())
    query = np.ones((2, 6, 16), "float32")
    assert layer.compute_output_shape(query.shape) == layer(query).shape


@pytest.mark.parametrize("name", [*small.MODELS, "features"])
def test_models(name):
    changes = {"output_size": None} if name == "features" else {}
    model = small.MODELS.get(name, small.encoder)(RoPE(), **changes)
    batch = small.inputs(model, small.token_ids())
    shapes = {name: array.shape for name, array in batch.items()}
    assert model.compute_output_shape(shapes) == model(batch).shape
