"""Makes an encoder of this library, its peer of Keras layers, and steps."""

import keras
import numpy as np
import tensorflow as tf

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


def make_training_step(
    model, batch_size, tokens, *, compile=False, clip_norm=None
):
    """Makes a function that trains for one step and returns the loss.

    Args:
        model: Keras model from token ids 0 to 2 to logits of two classes.
        batch_size: int, number of examples, which are the same in each step.
        tokens: int, number of tokens of each.
        compile: bool, whether XLA compiles the forward and backward pass.
        clip_norm: float, largest global norm of the gradients; None: any.
    """
    generator = np.random.default_rng(0)
    token_ids = generator.integers(0, 3, (batch_size, tokens), np.int32)
    targets = generator.integers(0, 2, (batch_size, tokens), np.int32)
    optimizer = keras.optimizers.Adam(1e-4, global_clipnorm=clip_norm)
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=compile)
    def forward_backward(token_ids, targets):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                targets, model(token_ids, training=True)
            )
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        return loss, [tf.convert_to_tensor(each) for each in gradients]

    @tf.function
    def step(token_ids, targets):
        loss, gradients = forward_backward(token_ids, targets)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    return lambda: step(tf.constant(token_ids), tf.constant(targets))
