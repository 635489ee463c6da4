"""Exported programs, and models of symbols.

Runs on TensorFlow, and on JAX by `tests/keras_lengen/test_backends.py`.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import (
    ALiBi,
    MultiHeadAttention,
    RandomizedALiBi,
    RandomizedRoPE,
)
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.models.small import (
    VOCABULARY_SIZE,
    decoder,
    encoder,
    encoder_decoder,
    inputs,
    token_ids,
)
from tests.products import product

# Keras' own, on JAX.
pytestmark = pytest.mark.filterwarnings(
    "ignore:The `native_serialization` parameter:DeprecationWarning"
)

EVEN = {"max_position": 32, "evaluation": "even"}


def exported(model, tmp_path):
    model.export(tmp_path / "model", verbose=False)
    return tf.saved_model.load(tmp_path / "model")


MODELS = {
    "rotation": lambda: encoder(RandomizedRoPE(**EVEN)),
    "chunks": lambda: encoder(RandomizedALiBi(**EVEN), chunk_size=4),
    "decoder": lambda: decoder(ALiBi(), output_size=VOCABULARY_SIZE),
}


@pytest.mark.parametrize("name", product(MODELS, keep=["decoder"]))
def test_a_trained_model_is_served_integers_of_any_length(name, tmp_path):
    model = MODELS[name]()
    model.compile(
        "sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    model.fit(token_ids(), token_ids() % 2, verbose=0)
    loaded = exported(model, tmp_path)
    for ids in (token_ids(), token_ids(11, batch_size=3)):
        np.testing.assert_allclose(
            loaded.serve(tf.constant(ids)), model(ids), atol=1e-5
        )


@pytest.mark.product
def test_an_encoder_decoder_is_served_a_dict(tmp_path):
    model = encoder_decoder(RandomizedRoPE(**EVEN))
    batch = inputs(model, token_ids())
    expected = model(batch)
    loaded = exported(model, tmp_path)
    batch = keras.tree.map_structure(tf.constant, batch)
    np.testing.assert_allclose(loaded.serve(batch), expected, atol=1e-5)


def test_a_served_sequence_longer_than_the_range_shows(tmp_path):
    loaded = exported(encoder(RandomizedRoPE(**EVEN)), tmp_path)
    ids = tf.constant(token_ids(40))
    try:
        assert np.isnan(loaded.serve(ids)).all()
    except tf.errors.InvalidArgumentError as error:
        assert "max_position is 32" in str(error)
        assert "[40]" in str(error)


@pytest.mark.parametrize(
    "variant", product(encodings.VARIANTS, keep=encodings.in_families)
)
def test_a_functional_model_of_any_length_is_made_of_an_encoding(variant):
    encoding = encodings.make(variant)
    arrays = encodings.random_inputs(encoding.stage)
    symbols = [keras.Input((None, *x.shape[2:])) for x in arrays]
    outputs = keras.tree.flatten(encoding(*symbols))
    model = keras.Model(symbols, outputs)
    for symbol, output in zip(
        outputs, keras.tree.flatten(model(arrays)), strict=True
    ):
        assert symbol.dtype == keras.backend.standardize_dtype(output.dtype)
        for size, static in zip(output.shape, symbol.shape, strict=True):
            assert static in (None, size)


def test_attention_takes_sequences_of_any_length():
    symbol = keras.Input((None, encodings.MODEL_DIM))
    attention = MultiHeadAttention(2, 8, encoding=RandomizedRoPE(**EVEN))
    model = keras.Model(symbol, attention(symbol, symbol))
    (array,) = encodings.random_inputs("embeddings")
    assert model(array).shape == array.shape
