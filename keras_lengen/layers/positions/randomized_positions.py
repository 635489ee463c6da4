"""Randomized positions: an ordered random subset of a long range."""

from typing import Any, Literal

import keras
from keras import ops

from keras_lengen.checks.arguments import (
    LARGEST_POSITION,
    Integer,
)
from keras_lengen.checks.constructors import argument
from keras_lengen.checks.guards import guard
from keras_lengen.checks.inputs import as_size, find_static_size, format_size
from keras_lengen.layers.positions.base import (
    RandomSampler,
    Seeded,
    count_tokens,
)
from keras_lengen.layers.positions.evaluation import Evaluation
from keras_lengen.types import Size, Tensor, TensorLike


class RandomizedArguments(Seeded):
    """Arguments of `RandomizedPositions`, and of encodings that contain it."""

    max_position: int = argument(
        Integer(
            most=LARGEST_POSITION,
            example=64,
            what="the size of the range of positions",
        )
    )
    resample: Literal["batch", "example"] = argument(default="batch")
    evaluation: Literal["random", "even", "ordinal"] = argument(
        Evaluation("random", "even", "ordinal"), default="random"
    )
    ordered: bool = argument(default=True)
    include_zero: bool = argument(default=False)


@keras.saving.register_keras_serializable(package="keras_lengen")
class RandomizedPositions(RandomizedArguments, RandomSampler):
    """Draws the positions of `T` tokens as an ordered subset of a long range.

    A draw is uniform over all subsets of size `T` of `0 .. max_position - 1`,
    and is sorted. A model trained on short sequences therefore sees every
    position that longer sequences will have.

    A sequence of true length `n` that is padded to `T` gets a uniform subset
    of size `n`: a draw is one random permutation of the range, and each
    sequence takes its first `n` entries. Shapes stay static, so that one
    compiled program can process all lengths.

    Args:
        max_position: int, from 1 to `2 ** 24`, beyond which float32 merges
            neighbouring positions. Size of the range, at least the length of
            the longest sequence of training and evaluation.
        resample: str. `"batch"`: one draw shared by the batch, as in the
            paper. `"example"`: one draw per example, which sorts
            `max_position` numbers for each example.
        evaluation: str, positions if `training` is false. `"random"`: drawn as
            in training, as the authors do. `"even"`: evenly spaced over the
            range. `"ordinal"`: 0, 1, 2, ...
        ordered: bool, whether draws are sorted. `False` is the paper's
            ablation; it affects draws only, not `"even"` and `"ordinal"`.
        include_zero: bool, whether every draw contains position 0. The other
            positions are then a uniform subset of the rest, and the distances
            from the first position a uniform subset of `1 .. max_position - 1`
            as in the code of Ruoss et al., 2023, that samples distances.
        seed: int from 0 to `2 ** 31 - 1`, seed of the draws, or `None`.

    Raises:
        ValueError: If an argument is out of range, or a sequence is longer
            than `max_position`. If its length is known only when a compiled
            program runs, the program ends with an assertion; under XLA, all
            positions become invalid, and every encoding turns invalid
            positions to NaN.

    Returns:
        int32 positions `(T,)`, or `(B, T)` with `resample="example"` or with
        lengths of shape `(B,)`.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import RandomizedPositions
    >>> RandomizedPositions(max_position=512)(ops.zeros((2, 4))).shape
    TensorShape([4])
    >>> sampler = RandomizedPositions(max_position=8, evaluation="even")
    >>> sampler(ops.zeros((2, 4)), training=False).numpy().tolist()
    [0, 2, 4, 6]

    Reference: Ruoss et al., 2023, section 3.
    https://arxiv.org/abs/2305.16843
    """

    is_random = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.is_increasing = self.ordered

    def sample(
        self,
        inputs: Tensor,
        *,
        lengths: Tensor | None = None,
        reference_length: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        tokens = count_tokens(inputs)
        if find_static_size(tokens) is not None:
            self._guard_reach((), tokens)  # Before the draw fails.
        if training or self.evaluation == "random":
            positions = self._draw(ops.shape(inputs)[0], tokens, lengths)
        else:
            positions = ops.arange(tokens, dtype="int32")
            if self.evaluation == "even":
                lengths = tokens if lengths is None else lengths
                positions = self._spread(positions, lengths)
        return self._guard_reach(positions, tokens)

    def _guard_reach(self, guarded: Any, tokens: Size) -> Any:
        return guard(
            guarded,
            as_size(tokens) <= self.max_position,
            "a sequence of ",
            format_size(tokens),
            " tokens needs as many positions, but max_position is "
            f"{self.max_position}: raise max_position to at least the longest "
            "sequence of training and evaluation.",
        )

    def _draw(
        self, batch_size: Size, tokens: Size, lengths: Tensor | None
    ) -> Tensor:
        draws = (batch_size,) if self.resample == "example" else ()
        # The indices that sort max_position random numbers, largest first, are
        # a random permutation: its first n are a random subset, for every n.
        scores = keras.random.uniform(
            (*draws, self.max_position),
            # Half precision has too few numbers: many would be equal.
            dtype="float32",
            seed=self.seed_generator,
        )
        if self.include_zero:
            first = ops.arange(self.max_position, dtype="int32") == 0
            scores = ops.where(first, 2.0, scores)
        positions = self._find_largest(scores, tokens)
        if lengths is not None:
            indices = ops.arange(tokens, dtype="int32")
            used = ops.less(indices, ops.expand_dims(lengths, -1))
            positions = ops.where(used, positions, self.max_position)
        if self.ordered:
            positions = ops.sort(positions, axis=-1)
        return ops.cast(ops.minimum(positions, self.max_position - 1), "int32")

    def _find_largest(self, scores: Tensor, tokens: Size) -> Tensor:
        """Finds the indices of the `tokens` largest scores, largest first."""
        static = find_static_size(tokens)
        if static is not None and static <= self.max_position:
            return ops.top_k(scores, static)[1]
        # Here there may be more tokens than scores; the error of top_k would
        # not mention max_position.
        order = ops.argsort(-scores, axis=-1)
        ranks = ops.arange(tokens, dtype="int32")
        return ops.take(
            order, ops.minimum(ranks, self.max_position - 1), axis=-1
        )

    def _spread(self, indices: Tensor, lengths: TensorLike) -> Tensor:
        """Computes `floor(index * max_position / length)`."""
        lengths = ops.expand_dims(
            ops.maximum(ops.cast(lengths, "int32"), 1), -1
        )
        whole = self.max_position // lengths
        rest = self.max_position - whole * lengths
        positions = indices * whole + _scale_indices(indices, rest, lengths)
        return ops.minimum(positions, self.max_position - 1)


def _scale_indices(indices: Tensor, rest: Tensor, lengths: Tensor) -> Tensor:
    """Computes `floor(indices * rest / lengths)` of int32 below `2 ** 24`.

    `rest` is below `lengths`, which is at most the number of indices.
    """
    if (find_static_size(indices.shape[0]) or 2**24) ** 2 < 2**31:
        return (indices * rest) // lengths
    # The product may exceed int32, so rest is processed bit by bit, as in long
    # division.
    share = remainder = ops.zeros_like(indices * lengths)
    for bit in reversed(range(24)):
        remainder = 2 * remainder + indices * (rest // 2**bit % 2)
        share = 2 * share + remainder // lengths
        remainder = remainder % lengths
    return share
