"""Rotary position embedding at warped positions."""

from collections.abc import Sequence
from typing import Any, Literal

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
    >>> encoding = WarpedRoPE(
    ...     train_length=128, head_fraction=0.4, tail_fraction=0.4)
    >>> encoding(ops.ones((2, 5, 4, 8)), training=True).shape
    TensorShape([2, 5, 4, 8])

    Reference: see `WarpedPositions`.
    """

    sampler_class = WarpedPositions

    def __init__(
        self,
        *,
        train_length: int,
        head_fraction: float = 0.15,
        tail_fraction: float = 0.15,
        head_scales: Sequence[float] = (0.4, 0.5, 0.6, 0.7, 0.8),
        skew: Literal["sqrt", "beta"] = "sqrt",
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            train_length=train_length,
            head_fraction=head_fraction,
            tail_fraction=tail_fraction,
            head_scales=head_scales,
            skew=skew,
            seed=seed,
            **kwargs,
        )
