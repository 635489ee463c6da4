"""Small models to test with."""

import numpy as np

from keras_lengen.models import TransformerEncoder
from tests.keras_lengen.layers.encodings.table import HEADS, MODEL_DIM

VOCABULARY_SIZE, OUTPUT_SIZE = 7, 3


def token_ids(tokens=6, batch_size=2):
    generator = np.random.default_rng(0)
    shape = (batch_size, tokens)
    return generator.integers(VOCABULARY_SIZE, size=shape, dtype="int32")


def encoder(encoding=None, **changes):
    return TransformerEncoder(
        **{
            "vocabulary_size": VOCABULARY_SIZE,
            "output_size": OUTPUT_SIZE,
            "num_layers": 1,
            "num_heads": HEADS,
            "model_dim": MODEL_DIM,
            "feedforward_dim": 8,
            "encoding": encoding,
            **changes,
        }
    )


def added_parameters(encoding, **kwargs):
    """How many parameters an encoding adds to an encoder."""
    with_it, without = encoder(encoding, **kwargs), encoder(**kwargs)
    return with_it.count_params() - without.count_params()
