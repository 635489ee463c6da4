"""Rotary position embedding at warped positions."""

import keras

from keras_lengen.layers.encodings.randomized import FixedSampler
from keras_lengen.layers.encodings.rope import RoPE
from keras_lengen.layers.positions.warped_positions import WarpedPositions


@keras.saving.register_keras_serializable(package="keras_lengen")
class WarpedRoPE(FixedSampler, RoPE):
    """`RoPE` at `WarpedPositions`, which are interpolated in evaluation.

    Takes the arguments of both.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import WarpedRoPE
    >>> encoding = WarpedRoPE(train_length=20)
    >>> encoding(ops.ones((2, 5, 4, 8)), training=True).shape
    TensorShape([2, 5, 4, 8])

    Reference: see `WarpedPositions`.
    """

    sampler_class = WarpedPositions

    def __init__(
        self,
        *,
        train_length,
        head_fraction=0.15,
        tail_fraction=0.15,
        head_scales=(0.4, 0.5, 0.6, 0.7, 0.8),
        skew="sqrt",
        seed=None,
        **kwargs,
    ):
        super().__init__(
            train_length=train_length,
            head_fraction=head_fraction,
            tail_fraction=tail_fraction,
            head_scales=head_scales,
            skew=skew,
            seed=seed,
            **kwargs,
        )
