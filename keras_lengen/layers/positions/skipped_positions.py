"""Positions that skip ahead between contiguous pieces of a sequence."""

from typing import Literal

import keras
from keras import ops

from keras_lengen.checks.arguments import (
    LARGEST_POSITION,
    Integer,
)
from keras_lengen.checks.constructors import argument
from keras_lengen.checks.guards import guard
from keras_lengen.checks.inputs import as_size, format_size
from keras_lengen.layers.positions.base import RandomSampler, count_tokens
from keras_lengen.layers.positions.evaluation import Evaluation
from keras_lengen.types import Size, Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class SkippedPositions(RandomSampler):
    """Cuts a sequence into pieces and skips positions between them (PoSE).

    In training, a sequence of `n` tokens is cut at random places into at most
    `num_pieces` pieces. The first piece begins at position 0, and positions are
    skipped before each further piece, so that the last one stays below
    `max_position`. Within a piece, neighbouring tokens have neighbouring
    positions; tokens of different pieces are as far apart as in a sequence of
    `max_position` tokens. A pretrained model that is fine-tuned on short
    sequences in this way sees the distances of long ones.

    The `num_pieces - 1` cuts of an example are independent and uniform over
    the `n - 1` places between two tokens; where two coincide, there is one
    piece less. With `r` of the `max_position - n` positions not yet skipped,
    the number of positions skipped at a cut is uniform over `0 .. r`.

    Args:
        max_position: int, from 1 to `2 ** 24`. Number of positions, at least
            the length of the longest sequence of training and evaluation.
        num_pieces: int, from 2 to `2 ** 24`. Largest number of pieces.
        evaluation: str, positions if `training` is false. `"ordinal"`: 0, 1,
            2, ... `"random"`: drawn as in training.
        seed: int from 0 to `2 ** 31 - 1`, seed of the draws, or `None`.

    Raises:
        ValueError: If an argument is out of range, or a sequence is longer
            than `max_position`. If its length is known only when a compiled
            program runs, the program ends with an assertion; under XLA, all
            positions become invalid, and every encoding turns invalid
            positions to NaN.

    Returns:
        int32 positions `(B, T)`.

    Differs from the paper: any place between two tokens may be a cut. In the
    released code, which has two pieces, the first one is at most half of the
    sequence. There, the tokens of the second piece also come from a later part
    of the text; here, the text does not change.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import SkippedPositions
    >>> sampler = SkippedPositions(max_position=2048, seed=1)
    >>> positions = sampler(ops.zeros((1, 8)), training=True)[0].numpy()
    >>> steps = positions[1:] - positions[:-1]
    >>> int((steps > 1).sum()), int(positions.max()) < 2048
    (1, True)
    >>> sampler(ops.zeros((1, 4))).numpy().tolist()
    [[0, 1, 2, 3]]

    Reference: Zhu et al., 2024, section 3.2. https://arxiv.org/abs/2309.10400
    """

    max_position: int = argument(
        Integer(
            most=LARGEST_POSITION,
            example=64,
            what="the number of positions",
        )
    )
    num_pieces: int = argument(
        Integer(
            2, LARGEST_POSITION, example=3, what="the largest number of pieces"
        ),
        default=2,
    )
    evaluation: Literal["ordinal", "random"] = argument(
        Evaluation("ordinal", "random"), default="ordinal"
    )

    is_random = True
    stretches = True

    def sample(
        self,
        inputs: Tensor,
        *,
        lengths: Tensor | None = None,
        reference_length: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        batch_size, tokens = ops.shape(inputs)[0], count_tokens(inputs)
        positions = ops.broadcast_to(
            ops.arange(tokens, dtype="int32"), (batch_size, tokens)
        )
        if training or self.evaluation == "random":
            lengths = tokens if lengths is None else lengths
            lengths = ops.expand_dims(ops.cast(lengths, "int32"), -1)
            positions = self._skip(positions, batch_size, lengths)
        return guard(
            positions,
            as_size(tokens) <= self.max_position,
            "a sequence of ",
            format_size(tokens),
            " tokens needs as many positions, but max_position is "
            f"{self.max_position}: raise max_position to at least the longest "
            "sequence of training and evaluation.",
        )

    def _skip(
        self, indices: Tensor, batch_size: Size, lengths: Tensor
    ) -> Tensor:
        """Adds the skipped positions to the indices `(B, T)` of the tokens."""
        shares = keras.random.uniform(
            (2, batch_size, self.num_pieces - 1),
            dtype="float32",
            seed=self.seed_generator,
        )
        cuts = ops.sort(1 + _scale(shares[0], lengths - 1), axis=-1)
        room = self.max_position - lengths
        positions = indices
        for cut in range(self.num_pieces - 1):
            skipped = _scale(shares[1, :, cut : cut + 1], room + 1)
            room = room - skipped
            after = indices >= cuts[:, cut : cut + 1]
            positions = positions + ops.where(after, skipped, 0)
        # Padding continues the last piece, past the largest position.
        return ops.minimum(positions, self.max_position - 1)


def _scale(shares: Tensor, count: Tensor) -> Tensor:
    """Turns numbers uniform over 0 to 1 into integers below `count`."""
    count = ops.cast(ops.maximum(count, 1), "float32")
    return ops.cast(shares * count, "int32")
