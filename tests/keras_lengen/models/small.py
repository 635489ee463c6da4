"""Small models to test with."""

import contextlib
import functools

import keras
import numpy as np

from keras_lengen.layers import MultiHeadAttention, Recipe
from keras_lengen.models import (
    EncoderDecoder,
    LoopedDecoder,
    TransformerDecoder,
    TransformerEncoder,
)
from tests.keras_lengen.bad_inputs import SIZES
from tests.keras_lengen.layers.encodings import table as encodings

VOCABULARY_SIZE, OUTPUT_SIZE = SIZES["vocabulary_size"], SIZES["output_size"]


def token_ids(tokens=6, batch_size=2):
    generator = np.random.default_rng(0)
    shape = (batch_size, tokens)
    return generator.integers(VOCABULARY_SIZE, size=shape, dtype="int32")


def _small(model, encoding=None, **changes):
    return model(**{**SIZES, "encoding": encoding, **changes})


encoder = functools.partial(_small, TransformerEncoder)
decoder = functools.partial(_small, TransformerDecoder)
encoder_decoder = functools.partial(_small, EncoderDecoder)
looped_decoder = functools.partial(_small, LoopedDecoder, loops=2)

recipe = functools.partial(Recipe, MultiHeadAttention)

MODELS = {
    "encoder": encoder,
    "decoder": decoder,
    "encoder_decoder": encoder_decoder,
    "looped_decoder": looped_decoder,
}


def make(model, variant, *, encoding_changes=None, **changes):
    """A model, for keys of `MODELS` and of the table of encodings.

    Cross attention has the same encoding where it can have one.
    """
    encoding = encodings.make(variant, **(encoding_changes or {}))
    crosses = encoding.stage != "embeddings" and not (
        encoding.reads_ranks or encoding.reads_inputs
    )
    if model == "encoder_decoder" and crosses:
        changes = {"cross_encoding": encoding, **changes}
    return MODELS[model](encoding, **changes)


def inputs(model, token_ids, **others):
    """Inputs of a model; source and target of two sequences are alike."""
    source = {"token_ids": token_ids, **others}
    if not isinstance(model, EncoderDecoder):
        return source
    target = {
        f"target_{name.removeprefix('token_')}": value
        for name, value in source.items()
    }
    return {**source, **target}


def with_random_weights(model):
    """The model, with norms and biases that do something too."""
    generator = np.random.default_rng(0)
    model.set_weights(
        [generator.normal(size=weight.shape) / 3 for weight in model.weights]
    )
    return model


def with_large_kernels(model):
    """The model, with outputs that depend on all of its tokens.

    Offsets stay 0, and norms 1: constants would decide which token comes next.
    """
    generator = np.random.default_rng(0)
    for weight in model.trainable_weights:
        if len(weight.shape) > 1:
            weight.assign(generator.normal(size=weight.shape) / 2)
    return model


def attentive(model, encoding=None, **changes):
    """A model whose next token depends on more than the last one."""
    sizes = {"vocabulary_size": 9, "output_size": None}
    return with_large_kernels(model(encoding, **{**sizes, **changes}))


@keras.saving.register_keras_serializable(package=__name__)
class Witness(MultiHeadAttention):
    """An attention that remembers the positions it was given."""

    seen = []

    def call(self, query, value, key=None, *, context=None, **kwargs):
        self.seen.append(np.array(context.positions))
        return super().call(query, value, key, context=context, **kwargs)


@contextlib.contextmanager
def eagerly():
    """Runs programs of TensorFlow without the wait for their compilation."""
    if keras.backend.backend() != "tensorflow":
        yield
        return
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(False)
