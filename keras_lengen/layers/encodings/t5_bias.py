"""Bias of T5, learned for buckets of distances."""

import bisect
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_lengen.checks.arguments import LARGEST_POSITION, Integer
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.base import AttentionSpec
from keras_lengen.layers.encodings.bias import BiasEncoding
from keras_lengen.layers.encodings.distances import (
    as_indices,
    find_signed_distances,
    make_nan_factor,
)
from keras_lengen.types import InputShape, IntArray, Positions, Tensor

MAX_BUCKETS = 2**10
"""Largest number of buckets, whose limits are exact ratios of long integers.
"""


@keras.saving.register_keras_serializable(package="keras_lengen")
class T5Bias(BiasEncoding):
    """Adds a learned number for the bucket that a distance falls into (T5).

    Each of the first `e = n // 2` of `n` buckets contains one distance. The
    sizes of the others grow geometrically: a distance `d >= e` falls into
    bucket `e + floor(log(d / e) / log(max_distance / e) * (n - e))`, at most
    `n - 1`. In causal attention, `n = num_buckets` and all keys at larger
    positions count as distance 0. Otherwise, keys at smaller and at larger
    positions have `n = num_buckets / 2` buckets each, also in causal attention
    if the sampler does not keep the order of the tokens (`is_increasing`). All
    distances from `max_distance` on share a bucket.

    Stage: `attention_bias`, float32 `(1 or B, H, T, S)`, added to scaled
    scores. Weights: `(num_buckets, H)`, by default one table for all layers.
    Positions: any numbers, with or without gaps; only differences matter,
    without their fractions. In causal attention, no token may have a larger
    position than a later one, unless the sampler does not keep the order.

    Args:
        num_buckets: int, even, from 4 to 1024. Number of buckets of distances.
        max_distance: int, from 1 to `2 ** 24`, above `num_buckets / 2`. All
            distances from this one on are in the last bucket.
        share_layers: bool, whether all layers share the table, as in the
            authors' code.
        sampler: `PositionSampler`, or `None` for positions 0, 1, 2, ...

    Raises:
        ValueError: If an argument is out of range; in causal attention, if
            given positions decrease although the sampler keeps the order. If
            they are known only when a compiled program runs, the program ends
            with an assertion; under XLA, the output of attention is NaN. Not
            checked if there is an `attention_mask`.

    Differs from the paper: the bias is added to scaled scores.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import T5Bias
    >>> T5Bias(max_distance=48)(ops.ones((2, 3, 8, 4)), causal=True).shape
    TensorShape([1, 8, 3, 3])

    Reference: Raffel et al., 2020, section 2.1 (with the buckets of the
    authors' code). https://arxiv.org/abs/1910.10683
    """

    num_buckets: int = argument(Integer(4, MAX_BUCKETS, example=16), default=32)
    max_distance: int = argument(
        Integer(most=LARGEST_POSITION, example=64), default=128
    )
    share_layers: bool = argument(default=True)

    requires_increasing_positions = True
    shift_invariant = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_buckets % 2:
            raise ValueError(
                "num_buckets must be an even number of at least 4, because "
                "half of the buckets are for past and half for future keys; "
                f"got {self.num_buckets!r}."
            )
        if not self.max_distance > self.num_buckets // 2:
            raise ValueError(
                f"max_distance must be above num_buckets / 2 = "
                f"{self.num_buckets // 2}, the number of distances with a "
                f"bucket of their own; got {self.max_distance!r}."
            )

    def build(
        self, query_shape: InputShape, key_shape: InputShape | None = None
    ) -> None:
        super().build(query_shape, key_shape)
        heads, width = query_shape[-2:]
        self.table = self.add_weight(
            name="table",
            shape=(self.num_buckets, heads),
            initializer=keras.initializers.RandomNormal(
                stddev=(heads * width) ** -0.5
            ),
            autocast=False,
        )

    def prepare(
        self,
        query_positions: Positions,
        key_positions: Positions,
        spec: AttentionSpec,
    ) -> Any:
        steps = find_signed_distances(
            query_positions, key_positions, "positions"
        )
        reach = self.max_distance
        indices = as_indices(ops.clip(steps, -reach, reach)) + reach
        buckets = ops.convert_to_tensor(
            self._find_buckets(spec.causal), "int32"
        )
        return make_nan_factor(steps), indices, buckets

    def bias_at(self, prepared: Any, query: Tensor, key: Tensor) -> Tensor:
        valid, indices, buckets = prepared
        rows = ops.take(self.table, buckets, axis=0)
        bias = ops.take(rows, indices, axis=0)
        if len(bias.shape) == 3:
            bias = ops.expand_dims(bias, 0)
        bias = ops.cast(ops.transpose(bias, (0, 3, 1, 2)), "float32")
        return valid * bias

    def bias_of_pair(
        self,
        parameters: Sequence[Tensor],
        query_position: Tensor,
        key_position: Tensor,
        *,
        causal: bool = False,
    ) -> Tensor:
        steps = key_position - query_position
        if causal:
            bias = self._choose(parameters, -steps)
        else:
            half = self.num_buckets // 2
            past, future = parameters[:half], parameters[half:]
            distances = ops.abs(steps)
            bias = ops.where(
                steps >= 1,
                self._choose(future, distances),
                self._choose(past, distances),
            )
        # NaN where a position is.
        return bias + 0 * steps

    def make_pair_parameters(self, heads: int) -> Tensor:
        return ops.transpose(ops.cast(self.table, "float32"))

    def _choose(self, numbers: Sequence[Tensor], distances: Tensor) -> Tensor:
        """Chooses the number of the bucket of each distance of a direction."""
        chosen = numbers[0]
        starts = find_bucket_starts(len(numbers), self.max_distance)
        for start, number in zip(starts[1:], numbers[1:], strict=True):
            chosen = ops.where(distances >= start, number, chosen)
        return chosen

    def _find_buckets(self, causal: bool) -> IntArray:
        """Finds the buckets of distances `-max_distance .. max_distance`."""
        steps = np.arange(-self.max_distance, self.max_distance + 1)
        if causal:
            return self._assign_buckets(np.maximum(-steps, 0), self.num_buckets)
        half = self.num_buckets // 2
        return self._assign_buckets(np.abs(steps), half) + half * (steps > 0)

    def _assign_buckets(
        self, distances: IntArray, num_buckets: int
    ) -> IntArray:
        starts = find_bucket_starts(num_buckets, self.max_distance)
        return np.searchsorted(starts, distances, side="right") - 1


def find_bucket_starts(num_buckets: int, max_distance: int) -> list[int]:
    """Finds the smallest distance of every bucket of one direction.

    Args:
        num_buckets: int, number of buckets for one direction.
        max_distance: int, distance from which on all are in the last bucket.

    Returns:
        List of `num_buckets` ints, ascending.
    """
    exact = num_buckets // 2
    others = num_buckets - exact

    def reached(distance: int, bucket: int) -> bool:
        # log(distance / exact) / log(max_distance / exact) * others >= bucket,
        # computed with integers to avoid rounding errors.
        return (
            distance**others * exact**bucket
            >= max_distance**bucket * exact**others
        )

    distances = range(max_distance)
    return list(range(exact)) + [
        bisect.bisect_left(distances, True, key=lambda d: reached(d, bucket))
        for bucket in range(others)
    ]
