"""Bias learned for near signed distances, with a slope beyond them."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_lengen.checks.arguments import (
    LARGEST_POSITION,
    Integer,
    Number,
    Optional,
)
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.base import AttentionSpec
from keras_lengen.layers.encodings.bias import BiasEncoding
from keras_lengen.layers.encodings.distances import (
    HIDDEN,
    as_indices,
    find_signed_distances,
    make_nan_factor,
)
from keras_lengen.types import InputShape, Positions, Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class ClippedBias(BiasEncoding):
    """Learned bias per signed distance, with linear decay beyond a limit.

    With `d = key_position - query_position`, head `h` adds

    `table_scale * table[clip(d, -max_distance, max_distance), h]
    - slope * max(|d| - max_distance, 0)`.

    Near keys have a learned number for each signed distance. For far keys, only
    the side and the slope matter, so there is no maximum length. Because
    attention weights decay exponentially with the distance, attention to near
    keys is the same in a long sequence as in a short one. With `slope=None`,
    far keys are hidden: the output for a token depends only on the tokens
    around it.

    Unlike one-sided biases, it treats keys at larger positions like those at
    smaller ones, in causal attention too. Positions shared by several tokens
    need this, because earlier tokens may have larger positions.

    Stage: `attention_bias`, float32 `(1 or B, H, T, S)`, added to scaled
    scores. Weights: `(2 * max_distance + 1, H)`, by default a table for each
    layer.
    Positions: any numbers, with or without gaps; only differences matter, and
    the table is read without their fractions.

    Args:
        max_distance: int, from 1 to 4096. Largest distance with an entry of
            its own in the table.
        slope: float from 0 to `2 ** 24`. Decrease of the bias per position
            beyond `max_distance`; 0: a constant bias, so the total weight of
            far keys grows with their number. `None`: a bias of -1e9, which
            hides far keys.
        table_scale: float above 0, at most `2 ** 24`. Factor of the table. Adam
            changes all weights at about the same rate, so the bias changes this
            many times as fast as other weights.
        share_layers: bool, whether all layers share the table.
        sampler: `PositionSampler`, or `None` for positions 0, 1, 2, ...

    Raises:
        ValueError: If an argument is out of range.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import ClippedBias
    >>> ClippedBias()(ops.ones((2, 3, 8, 4))).shape
    TensorShape([1, 8, 3, 3])

    Reference: the table without slope is the relative bias in the code of Cho
    et al., 2024. https://arxiv.org/abs/2405.20671
    """

    max_distance: int = argument(Integer(most=2**12, example=2), default=4)
    slope: float | None = argument(
        Optional(Number(0, LARGEST_POSITION, example=0.5)), default=1.0
    )
    table_scale: float = argument(
        Number(most=LARGEST_POSITION, above=0, example=1.0), default=20.0
    )
    share_layers: bool = argument(default=False)

    shift_invariant = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.masks_keys = self.slope is None

    def build(
        self, query_shape: InputShape, key_shape: InputShape | None = None
    ) -> None:
        super().build(query_shape, key_shape)
        self.table = self.add_weight(
            name="table",
            shape=(2 * self.max_distance + 1, query_shape[-2]),
            initializer=keras.initializers.RandomNormal(stddev=0.05),
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
        if len(steps.shape) == 2:
            steps = ops.expand_dims(steps, 0)
        reach = self.max_distance
        indices = as_indices(ops.clip(steps, -reach, reach)) + reach
        beyond = ops.expand_dims(ops.maximum(ops.abs(steps) - reach, 0), 1)
        return make_nan_factor(steps), indices, beyond

    def bias_at(self, prepared: Any, query: Tensor, key: Tensor) -> Tensor:
        valid, indices, beyond = prepared
        rows = ops.cast(self.table, "float32") * self.table_scale
        bias = ops.transpose(ops.take(rows, indices, axis=0), (0, 3, 1, 2))
        if self.slope is None:
            bias = ops.where(beyond > 0, HIDDEN, bias)
        else:
            bias = bias - self.slope * beyond
        return valid * bias

    def bias_of_pair(
        self,
        parameters: Sequence[Tensor],
        query_position: Tensor,
        key_position: Tensor,
        *,
        causal: bool = False,
    ) -> Tensor:
        steps, reach = key_position - query_position, self.max_distance
        bias = parameters[reach]
        for distance in range(1, reach + 1):
            future, past = (
                parameters[reach + sign * distance] for sign in (1, -1)
            )
            bias = ops.where(steps >= distance, future, bias)
            bias = ops.where(steps <= -distance, past, bias)
        beyond = ops.maximum(ops.abs(steps) - reach, 0)
        if self.slope is None:
            bias = ops.where(beyond > 0, HIDDEN, bias)
        else:
            bias = bias - self.slope * beyond
        # NaN where a position is.
        return bias + 0 * steps

    def make_pair_parameters(self, heads: int) -> Tensor:
        rows = ops.cast(self.table, "float32") * self.table_scale
        return ops.transpose(rows)
