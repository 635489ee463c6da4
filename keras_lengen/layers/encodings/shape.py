"""Sines and cosines of randomly shifted positions."""

import keras

from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.randomized import FixedSampler
from keras_lengen.layers.encodings.sinusoidal_encoding import (
    SinusoidalEncoding,
)
from keras_lengen.layers.positions.shifted_positions import (
    ShiftedArguments,
    ShiftedPositions,
)


@keras.saving.register_keras_serializable(package="keras_lengen")
class SHAPE(FixedSampler, ShiftedArguments, SinusoidalEncoding):
    """`SinusoidalEncoding` at `ShiftedPositions`.

    Takes the arguments of both. The default `max_shift` is that of the paper's
    main experiments. To shift the positions of a learned table instead, use
    `LearnedEncoding(max_position=...,
    sampler=ShiftedPositions(max_shift=...))`.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import SHAPE
    >>> SHAPE(max_shift=500)(ops.zeros((2, 5, 8)), training=True).shape
    TensorShape([2, 5, 8])

    Reference: Kiyono et al., 2021. https://arxiv.org/abs/2109.05644
    """

    sampler_class = ShiftedPositions

    max_shift: int | None = argument(default=500)
