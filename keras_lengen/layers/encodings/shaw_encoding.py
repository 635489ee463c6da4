"""Bias by learned vectors of clipped distances."""

from typing import Any

import keras
from keras import ops

from keras_lengen.checks.arguments import LARGEST_POSITION, Integer
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.base import AttentionSpec
from keras_lengen.layers.encodings.bias import BiasEncoding
from keras_lengen.layers.encodings.distances import (
    as_indices,
    find_signed_distances,
    make_nan_factor,
    read_scores,
)
from keras_lengen.types import InputShape, Positions, Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class ShawEncoding(BiasEncoding):
    """Scores keys by a learned vector of their clipped distance (Shaw et al.).

    `q . table[clip(d, -max_distance, max_distance)] / sqrt(D)` is added to the
    scaled score of a query `q` and a key at signed distance `d`, the key's
    position minus the query's. All heads share the vectors. Distances beyond
    `max_distance` are treated alike.

    Stage: `attention_bias`, float32 `(B, H, T, S)`, added to scaled scores.
    Weights, in every layer: the table, `(2 * max_distance + 1, D)`.
    Positions: any numbers, with or without gaps; only differences matter,
    rounded to the nearest integer.

    Args:
        max_distance: int, from 0 to `2 ** 24`. Largest distance with its own
            vector.
        share_layers: bool, whether all layers share the vectors.
        sampler: `PositionSampler`, or `None` for positions 0, 1, 2, ...

    Raises:
        ValueError: If an argument is out of range.

    Differs from the paper: the paper adds learned vectors to both keys and
    values; this encoding has only the term of the keys.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import ShawEncoding
    >>> ShawEncoding()(ops.ones((2, 3, 8, 4))).shape
    TensorShape([2, 8, 3, 3])

    Reference: Shaw et al., 2018, section 3. https://arxiv.org/abs/1803.02155
    """

    max_distance: int = argument(
        Integer(0, LARGEST_POSITION, example=4), default=16
    )
    share_layers: bool = argument(default=False)

    shift_invariant = True

    def build(
        self, query_shape: InputShape, key_shape: InputShape | None = None
    ) -> None:
        super().build(query_shape, key_shape)
        self.table = self.add_weight(
            name="table",
            shape=(2 * self.max_distance + 1, query_shape[-1]),
            initializer="glorot_uniform",
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
        indices = ops.clip(ops.round(steps), -reach, reach)
        scale = make_nan_factor(steps) * spec.width**-0.5
        return scale, as_indices(indices) + reach

    def bias_at(self, prepared: Any, query: Tensor, key: Tensor) -> Tensor:
        scale, indices = prepared
        table = ops.cast(self.table, "float32")
        scores = ops.einsum("bthd,rd->btrh", ops.cast(query, "float32"), table)
        return scale * read_scores(scores, indices)
