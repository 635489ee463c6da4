"""Shifted positions: 0, 1, 2, ... from a random start."""

from typing import Literal

import keras
from keras import ops

from keras_lengen.checks.arguments import (
    LARGEST_POSITION,
    Integer,
    Optional,
)
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.positions.base import (
    RandomSampler,
    Seeded,
    count_tokens,
)
from keras_lengen.layers.positions.evaluation import Evaluation
from keras_lengen.types import Size, Tensor


class ShiftedArguments(Seeded):
    """Arguments of `ShiftedPositions`, and of encodings that contain it."""

    max_shift: int | None = argument(
        Optional(
            Integer(
                most=LARGEST_POSITION,
                example=56,
                what="the number of shifts to draw from",
            )
        )
    )
    evaluation: Literal["zero", "max", "random"] = argument(
        Evaluation("zero", "max", "random"), default="zero"
    )


@keras.saving.register_keras_serializable(package="keras_lengen")
class ShiftedPositions(ShiftedArguments, RandomSampler):
    """Shifts the positions of every example by a random number (SHAPE).

    In training, token `j` has position `j + k`, where the shift `k` is uniform
    over `0 .. max_shift - 1` and drawn once per example. A model trained on
    sequences of `N` tokens sees all positions of sequences of `N_long` tokens
    if `max_shift > N_long - N`.

    `max_shift=None` is random padding: in an example of true length `n` that
    is padded to `T`, the shift `k` is uniform over `0 .. T - n`, as if the
    padding were split at random between both ends. The positions of real
    tokens then do not exceed `T - 1`.

    Args:
        max_shift: int, from 1 to `2 ** 24`. Number of possible shifts, or
            `None` for as many as the padding of the example allows.
        evaluation: str, positions if `training` is false. `"zero"`: 0, 1, 2,
            ... `"max"`: shifted by `max_shift`, one more than the largest
            shift of training; for `max_shift=None`, shifted by `T - n`.
            `"random"`: drawn as in training.
        seed: int from 0 to `2 ** 31 - 1`, seed of the draws, or `None`.

    Raises:
        ValueError: If an argument is out of range.

    Returns:
        int32 positions `(B, T)`.

    Differs from the paper: `k` is below `max_shift`, as in the released code;
    in the paper, `k` may equal it. The released code evaluates with `"max"`.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import ShiftedPositions
    >>> ShiftedPositions(max_shift=200)(ops.zeros((1, 4))).numpy().tolist()
    [[0, 1, 2, 3]]
    >>> sampler = ShiftedPositions(max_shift=200, evaluation="max")
    >>> sampler(ops.zeros((1, 4))).numpy().tolist()
    [[200, 201, 202, 203]]

    Reference: Kiyono et al., 2021. https://arxiv.org/abs/2109.05644
    Random padding: Tao et al., 2023. https://arxiv.org/abs/2305.04859
    """

    is_random = True

    def sample(
        self,
        inputs: Tensor,
        *,
        lengths: Tensor | None = None,
        reference_length: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        batch_size, tokens = ops.shape(inputs)[0], count_tokens(inputs)
        count = last = self.max_shift
        if self.max_shift is None:
            lengths = tokens if lengths is None else lengths
            last = ops.expand_dims(tokens - ops.cast(lengths, "int32"), -1)
            count = last + 1
        if training or self.evaluation == "random":
            shift = self._draw(batch_size, count)
        else:
            shift = last if self.evaluation == "max" else 0
        positions = ops.arange(tokens, dtype="int32") + shift
        return ops.broadcast_to(positions, (batch_size, tokens))

    def _draw(self, batch_size: Size, count: Size) -> Tensor:
        share = keras.random.uniform(
            (batch_size, 1), dtype="float32", seed=self.seed_generator
        )
        return ops.cast(share * ops.cast(count, "float32"), "int32")
