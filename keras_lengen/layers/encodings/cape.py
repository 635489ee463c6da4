"""Sines and cosines of continuously augmented positions."""

import keras

from keras_lengen.layers.encodings.randomized import FixedSampler
from keras_lengen.layers.encodings.sinusoidal_encoding import (
    SinusoidalEncoding,
)
from keras_lengen.layers.positions.augmented_positions import (
    AugmentedArguments,
    AugmentedPositions,
)


@keras.saving.register_keras_serializable(package="keras_lengen")
class CAPE(FixedSampler, AugmentedArguments, SinusoidalEncoding):
    """`SinusoidalEncoding` at `AugmentedPositions`.

    Takes the arguments of both. The default augmentation is the paper's for
    text. The frequencies are those of the paper; with `layout="interleaved"`,
    the features also have its order. The paper multiplies the embeddings by
    `sqrt(M)`; here this is left to the model, and `TransformerEncoder` does so.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import CAPE
    >>> CAPE(max_global_shift=20)(ops.zeros((2, 5, 8)), training=True).shape
    TensorShape([2, 5, 8])

    Reference: Likhomanenko et al., 2021. https://arxiv.org/abs/2106.03143
    """

    sampler_class = AugmentedPositions
