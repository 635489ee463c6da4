"""Interpolated positions: long sequences within the trained range."""

import keras
from keras import ops

from keras_lengen.checks.arguments import (
    LARGEST_POSITION,
    Integer,
    Number,
    Optional,
)
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.positions.base import PositionSampler, count_tokens
from keras_lengen.types import Tensor


class TrainLength(Integer):
    """The length of the longest trained sequence in tokens."""

    def __init__(self) -> None:
        super().__init__(
            most=LARGEST_POSITION,
            example=6,
            what="the tokens of the longest trained sequence",
        )


@keras.saving.register_keras_serializable(package="keras_lengen")
class InterpolatedPositions(PositionSampler):
    """Compresses the positions of long sequences into the trained range.

    Without a `scaling_factor`, token `i` of a sequence of length `n` has
    position `i * min(1, train_length / n)`: sequences up to `train_length`
    have positions 0, 1, 2, ..., and longer ones have fractional positions
    below `train_length`. With a `scaling_factor`, the position is
    `i / scaling_factor` for every length.

    Positions are the same in training and evaluation. Without a
    `scaling_factor`, training on sequences up to `train_length` uses ordinary
    positions; a `scaling_factor` is for fine-tuning a trained model, and for
    using it afterwards.

    The length `n` is the first of these that is given: `reference_length`,
    `lengths`, `T`. Pass a `reference_length`, for example, to count the items
    that a prompt lists, or to count the prompt and the tokens to generate, so
    that positions stay fixed while tokens are generated one at a time.

    Args:
        train_length: int, from 1 to `2 ** 24`. Length of the longest trained
            sequence, in the same unit as the length `n`. Not used if there is
            a `scaling_factor`.
        scaling_factor: float from `2 ** -24` to `2 ** 24`, factor for all
            lengths, or `None` to scale by the length.

    Raises:
        ValueError: If an argument is out of range.

    Returns:
        float32 positions `(T,)`, or `(B, T)` if the length has shape `(B,)`.

    Differs from the paper: the paper has only the form with a fixed factor.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import InterpolatedPositions
    >>> sampler = InterpolatedPositions(train_length=64)
    >>> sampler(ops.zeros((1, 128)))[:4].numpy().tolist()
    [0.0, 0.5, 1.0, 1.5]

    Reference: Chen et al., 2023, section 2.3.
    https://arxiv.org/abs/2306.15595
    """

    train_length: int = argument(TrainLength())
    scaling_factor: float | None = argument(
        Optional(Number(1 / LARGEST_POSITION, LARGEST_POSITION, example=3.0)),
        default=None,
    )

    stretches = True
    fractional = True

    def sample(
        self,
        inputs: Tensor,
        *,
        lengths: Tensor | None = None,
        reference_length: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        if self.scaling_factor is None:
            return interpolate_positions(
                inputs,
                self.train_length,
                lengths=lengths,
                reference_length=reference_length,
            )
        indices = ops.arange(count_tokens(inputs), dtype="int32")
        return ops.cast(indices, "float32") * (1 / self.scaling_factor)


def interpolate_positions(
    inputs: Tensor,
    train_length: int,
    *,
    lengths: Tensor | None,
    reference_length: Tensor | None,
) -> Tensor:
    """Computes positions `i * min(1, train_length / n)`.

    Args:
        inputs: Tensor `(B, T, ...)`; only its shape is read.
        train_length: int, length of the longest trained sequence.
        lengths: int32 tensor `()` or `(B,)`, or `None` for `T`.
        reference_length: float32 tensor `()` or `(B,)` used in place of
            `lengths`, or `None`.

    Returns:
        float32 `(T,)` or `(B, T)`.
    """
    tokens = count_tokens(inputs)
    if reference_length is None:
        reference_length = tokens if lengths is None else lengths
    length = ops.cast(reference_length, "float32")
    # ops.minimum may hide that a length is NaN.
    ratio = ops.where(length <= train_length, 1.0, train_length / length)
    indices = ops.cast(ops.arange(tokens, dtype="int32"), "float32")
    return indices * ops.expand_dims(ratio, -1)
