"""Rotary position embedding at warped positions."""

import keras

from keras_lengen.layers.encodings.randomized import FixedSampler
from keras_lengen.layers.encodings.rope import RoPE
from keras_lengen.layers.positions.warped_positions import (
    WarpedArguments,
    WarpedPositions,
)


@keras.saving.register_keras_serializable(package="keras_lengen")
class WarpedRoPE(FixedSampler, WarpedArguments, RoPE):
    """`RoPE` at `WarpedPositions`, which are interpolated in evaluation.

    Takes the arguments of both.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import WarpedRoPE
    >>> encoding = WarpedRoPE(
    ...     train_length=128, head_fraction=0.4, tail_fraction=0.4)
    >>> encoding(ops.ones((2, 5, 4, 8)), training=True).shape
    TensorShape([2, 5, 4, 8])

    Reference: see `WarpedPositions`.
    """

    sampler_class = WarpedPositions
