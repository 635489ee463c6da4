import keras
import numpy as np
import pytest
from keras import ops

from keras_lengen.analysis import attention_weights, block_activations
from keras_lengen.conformance.requirements import restart
from keras_lengen.layers import ALiBi, RandomizedRoPE, RelativeEncoding
from tests.keras_lengen.models.small import encoder, encoder_decoder, recipe


def draw(tokens, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 7, (3, tokens), np.int32)


def test_weights_of_an_encoder_are_those_of_its_layer():
    model = encoder(ALiBi(), normalization=None)
    (weights,) = attention_weights(model, draw(5)).values()
    x = np.asarray(model.embedding(draw(5))) * 4
    _, wanted = model.blocks[0].attention_layer(
        x, x, return_attention_scores=True
    )
    np.testing.assert_allclose(weights, wanted, rtol=1e-5)


def test_layers_by_name():
    options = {"num_layers": 2, "num_decoder_layers": 1}
    chunked = recipe(chunk_size=2)
    model = encoder_decoder(RelativeEncoding(), attention=chunked, **options)
    inputs = {"token_ids": draw(5), "target_ids": draw(3, seed=1)}
    before = ops.convert_to_numpy(model(inputs))
    shapes = [w.shape for w in attention_weights(model, inputs).values()]
    assert shapes == [(3, 2, 5, 5)] * 2 + [(3, 2, 3, 3), (3, 2, 3, 5)]
    found = attention_weights(model, inputs, name="cross_attention")
    (weights,) = found.values()
    np.testing.assert_allclose(weights.sum(axis=-1), np.ones((3, 2, 3)), 1e-6)
    # The model is as before.
    np.testing.assert_array_equal(ops.convert_to_numpy(model(inputs)), before)


def test_outputs_are_those_of_the_same_random_positions():
    model = encoder(RandomizedRoPE(max_position=50, seed=1))
    model(draw(5))
    sampler = model.blocks[0].attention_layer.encoding.sampler
    restart(sampler)
    _, outputs = attention_weights(model, draw(5), return_outputs=True)
    others = model(draw(5))
    restart(sampler)
    np.testing.assert_array_equal(model(draw(5)), outputs)
    assert not np.array_equal(others, outputs)


def test_activations_of_blocks_are_those_before_the_head():
    encoding = RandomizedRoPE(max_position=32, evaluation="even")
    model = encoder(encoding, num_layers=2, dtype="mixed_bfloat16")
    outputs = ops.convert_to_numpy(model(draw(6)))
    found = block_activations(model, draw(6))
    first, last = found.values()
    assert [path.rpartition("/")[2] for path in found] == ["block_0", "block_1"]
    assert first.shape == last.shape == (3, 6, 16)
    assert first.dtype == last.dtype == np.dtype("float32")
    assert not np.allclose(first, last)
    logits = ops.convert_to_numpy(model.logits(last))
    np.testing.assert_allclose(logits, outputs, atol=1e-5)
    # The model is as before.
    again = ops.convert_to_numpy(model(draw(6)))
    np.testing.assert_allclose(again, outputs, atol=1e-6)


def test_what_has_no_such_layers():
    model = encoder()
    with pytest.raises(ValueError, match=r"model \(attention\); got 'cross'"):
        attention_weights(model, draw(4), name="cross")
    for function in (attention_weights, block_activations):
        with pytest.raises(ValueError, match="model must be a Model such as"):
            function("model", draw(4))
    plain = keras.Sequential([keras.layers.Dense(2)])
    with pytest.raises(ValueError, match="must have TransformerBlock layers"):
        block_activations(plain, np.ones((1, 3)))
