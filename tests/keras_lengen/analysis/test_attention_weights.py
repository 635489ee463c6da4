import numpy as np
import pytest
from keras import ops

from keras_lengen.analysis import attention_weights
from keras_lengen.layers import (
    ALiBi,
    NoPE,
    RandomizedRoPE,
    RelativeEncoding,
)
from keras_lengen.models import (
    EncoderDecoder,
    TransformerDecoder,
    TransformerEncoder,
)
from tests.keras_lengen.layers.positions.table import reset

SMALL = {"vocabulary_size": 7, "output_size": 7, "num_heads": 2, "model_dim": 8}


def draw(tokens, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 7, (3, tokens), np.int32)


def test_weights_of_an_encoder_are_the_softmax_of_its_scores():
    model = TransformerEncoder(
        num_layers=1, normalization=None, encoding=ALiBi(asymmetry=0), **SMALL
    )
    token_ids = draw(5)
    (weights,) = attention_weights(model, token_ids).values()
    layer = model.blocks[0].attention_layer
    x = np.asarray(model.embedding(token_ids)) * np.sqrt(8)
    query, key = (
        np.asarray(dense(x)).reshape(3, 5, 2, 4)
        for dense in (layer.query_dense, layer.key_dense)
    )
    scores = np.einsum("bthd,bshd->bhts", query, key) / 2
    distances = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    scores = scores - np.array([2.0**-4, 2.0**-8])[:, None, None] * distances
    wanted = np.exp(scores)
    wanted /= wanted.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(weights, wanted, rtol=1e-5)


def test_layers_by_name_and_a_model_that_works_as_before():
    model = EncoderDecoder(
        num_layers=2,
        num_decoder_layers=1,
        chunk_size=2,
        encoding=RelativeEncoding(),
        **SMALL,
    )
    inputs = {"token_ids": draw(5), "target_ids": draw(3, seed=1)}
    before = ops.convert_to_numpy(model(inputs))
    shapes = [w.shape for w in attention_weights(model, inputs).values()]
    assert shapes == [(3, 2, 5, 5)] * 2 + [(3, 2, 3, 3), (3, 2, 3, 5)]
    found = attention_weights(model, inputs, name="cross_attention")
    ((path, weights),) = found.items()
    assert path.endswith("/cross_attention")
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-6)
    np.testing.assert_array_equal(ops.convert_to_numpy(model(inputs)), before)


def test_outputs_are_those_of_the_same_random_positions():
    encoding = RandomizedRoPE(max_position=50, seed=1)
    model = TransformerEncoder(num_layers=1, encoding=encoding, **SMALL)
    model(draw(5))
    sampler = model.blocks[0].attention_layer.encoding.sampler
    reset(sampler)
    _, outputs = attention_weights(model, draw(5), return_outputs=True)
    others = model(draw(5))
    reset(sampler)
    np.testing.assert_array_equal(model(draw(5)), outputs)
    assert not np.array_equal(others, outputs)


def test_a_decoder_sees_no_later_tokens():
    model = TransformerDecoder(num_layers=1, encoding=NoPE(), **SMALL)
    (weights,) = attention_weights(model, draw(4)).values()
    assert not np.triu(weights, 1).any()


def test_what_has_no_weights():
    model = TransformerEncoder(num_layers=1, **SMALL)
    with pytest.raises(ValueError, match=r"model \(attention\); got 'cross'"):
        attention_weights(model, draw(4), name="cross")
    with pytest.raises(ValueError, match="model must be a Model such as Trans"):
        attention_weights("model", draw(4))
