"""Continuous positions: sorted random real numbers of one range."""

from typing import Literal

import keras
from keras import ops

from keras_lengen.checks.arguments import (
    LARGEST_POSITION,
    Integer,
)
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.positions.base import RandomSampler, count_tokens
from keras_lengen.layers.positions.evaluation import Evaluation
from keras_lengen.types import Size, Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_lengen")
class ContinuousPositions(RandomSampler):
    """Draws positions as sorted random real numbers of one range.

    The positions of a sequence of `n` true tokens are `n` independent numbers,
    uniform over 0 to `max_position`, in ascending order. Training and
    evaluation have the same range, whatever the lengths, so no length leads to
    positions outside of it: longer sequences are denser. Padding is at
    `max_position`.

    It is a sampler beside `RandomizedPositions` because its positions are
    fractions, which encodings with a table cannot look up, and because it
    promises less: two tokens may have the same position by chance, no position
    is certain to be drawn, and a sequence may be longer than the range.

    Args:
        max_position: int, from 1 to `2 ** 24`. End of the range of positions,
            which is not in it.
        resample: str. `"batch"`: one draw shared by the batch. `"example"`:
            one draw per example.
        evaluation: str, positions if `training` is false. `"random"`: drawn as
            in training, as published. `"even"`: evenly spaced over the range,
            from 0 on.
        seed: int from 0 to `2 ** 31 - 1`, seed of the draws, or `None`.

    Raises:
        ValueError: If an argument is out of range.

    Returns:
        float32 positions `(T,)`, or `(B, T)` with `resample="example"` or with
        lengths of shape `(B,)`.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import ContinuousPositions
    >>> ContinuousPositions(max_position=512)(ops.zeros((2, 4))).shape
    TensorShape([4])
    >>> sampler = ContinuousPositions(max_position=6, evaluation="even")
    >>> sampler(ops.zeros((2, 4)), training=False).numpy().tolist()
    [0.0, 1.5, 3.0, 4.5]

    Reference: Shimizu et al., 2026 (random float sampling).
    https://arxiv.org/abs/2602.14050
    """

    max_position: int = argument(
        Integer(
            most=LARGEST_POSITION,
            # As far as the tests of encodings with samplers go.
            example=63,
            what="the end of the range of positions",
        )
    )
    resample: Literal["batch", "example"] = argument(default="batch")
    evaluation: Literal["random", "even"] = argument(
        Evaluation("random", "even"), default="random"
    )

    is_random = True
    fractional = True

    def check_length(self, tokens: int, *, unit: str = "tokens") -> None:
        # The range has a position for any number of tokens.
        pass

    def sample(
        self,
        inputs: Tensor,
        *,
        lengths: Tensor | None = None,
        reference_length: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        tokens = count_tokens(inputs)
        indices = ops.arange(tokens, dtype="int32")
        if training or self.evaluation == "random":
            return self._draw(ops.shape(inputs)[0], tokens, indices, lengths)
        lengths = tokens if lengths is None else lengths
        return self._spread(indices, lengths)

    def _draw(
        self,
        batch_size: Size,
        tokens: Size,
        indices: Tensor,
        lengths: Tensor | None,
    ) -> Tensor:
        draws = (batch_size,) if self.resample == "example" else ()
        # Drawn with tokens as the first axis, so that the draws do not depend
        # on the amount of padding.
        shares = keras.random.uniform(
            (tokens, *draws), dtype="float32", seed=self.seed_generator
        )
        if draws:
            shares = ops.transpose(shares)
        positions = self.max_position * shares
        if lengths is not None:
            used = ops.less(indices, ops.expand_dims(lengths, -1))
            positions = ops.where(used, positions, float(self.max_position))
        return ops.sort(positions, axis=-1)

    def _spread(self, indices: Tensor, lengths: TensorLike) -> Tensor:
        lengths = ops.maximum(ops.cast(lengths, "float32"), 1.0)
        scaled = self.max_position * ops.cast(indices, "float32")
        positions = scaled / ops.expand_dims(lengths, -1)
        # Those of padding.
        return ops.minimum(positions, float(self.max_position))
