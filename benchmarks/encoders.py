"""Makes an encoder of this library, and its peer of Keras layers."""

import keras

from benchmarks.measure import make_encoding
from keras_lengen.models import TransformerEncoder, presets

MAX_POSITION = 2048


def make_keras_encoder(num_layers=presets["ruoss"]["num_layers"]):
    """Makes the encoder of `presets["ruoss"]` of Keras layers."""
    size = presets["ruoss"]
    width, heads = size["model_dim"], size["num_heads"]
    token_ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(3, width)(token_ids)
    for _ in range(num_layers):
        attended = keras.layers.MultiHeadAttention(
            heads, width // heads, use_bias=False
        )(x, x)
        attended = keras.layers.Dropout(size["dropout"])(attended)
        x = keras.layers.LayerNormalization(epsilon=1e-5)(x + attended)
        hidden = keras.layers.Dense(4 * width, activation="relu")(x)
        hidden = keras.layers.Dense(width)(hidden)
        hidden = keras.layers.Dropout(size["dropout"])(hidden)
        x = keras.layers.LayerNormalization(epsilon=1e-5)(x + hidden)
    return keras.Model(token_ids, keras.layers.Dense(2)(x))


def make_encoder(name, num_layers=presets["ruoss"]["num_layers"]):
    """Makes the same encoder with one of our encodings."""
    return TransformerEncoder(
        vocabulary_size=3,
        output_size=2,
        encoding=make_encoding(name, MAX_POSITION),
        **{**presets["ruoss"], "num_layers": num_layers},
    )
