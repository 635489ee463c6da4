"""Attention whose first heads see only a window of a few keys."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_lengen.checks.arguments import Integer, Optional
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.base import AttentionSpec
from keras_lengen.layers.encodings.bias import BiasEncoding
from keras_lengen.layers.encodings.distances import (
    HIDDEN,
    add_head_axis,
    find_signed_distances,
    make_nan_factor,
)
from keras_lengen.types import Array, InputShape, Positions, Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class HardALiBi(BiasEncoding):
    """Lets head `h` see only the `h` nearest positions; other heads see all.

    Of the first `windowed_heads` heads, head `h` attends to keys whose position
    differs from the query's by at most `h`: the first head attends only to the
    token itself, the next one also to its neighbours, and so on. All other
    heads have no positional encoding. Without causal attention, windows have
    keys on both sides. The encoding has no weights and no longest length.

    Stage: `attention_bias`, float32 `(1 or B, H, T, S)`: 0 inside the window
    and -1e9 outside, added to scaled scores.
    Positions: any numbers, with or without gaps; only differences matter.

    Args:
        windowed_heads: int, at least 1. Number of heads that have a window;
            at most the number of heads. `None` for half of the heads, but at
            least one.
        sampler: `PositionSampler`, or `None` for positions 0, 1, 2, ...

    Raises:
        ValueError: If an argument is out of range, or there are fewer heads
            than `windowed_heads`.

    Differs from the paper: attention need not be causal.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import HardALiBi
    >>> bias = HardALiBi(windowed_heads=3)(ops.ones((1, 4, 4, 8)), causal=True)
    >>> (bias[0, 1, 3] == 0).numpy().tolist()
    [False, False, True, True]

    Reference: Jelassi et al., 2024, section 3.1 (8 of 16 heads).
    https://arxiv.org/abs/2402.01032
    """

    windowed_heads: int | None = argument(
        Optional(Integer(example=2)), default=None
    )

    masks_keys = True
    shift_invariant = True

    def build(
        self, query_shape: InputShape, key_shape: InputShape | None = None
    ) -> None:
        super().build(query_shape, key_shape)
        heads = query_shape[-2]
        if (self.windowed_heads or 1) > heads:
            raise ValueError(
                f"windowed_heads={self.windowed_heads} is larger than the "
                f"number of heads, {heads}: lower it, or use more heads."
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
        distances = add_head_axis(ops.abs(steps))
        windows = self._find_windows(spec.heads)
        outside = ops.greater(distances, windows)
        bias = ops.where(outside, HIDDEN, 0.0)
        return make_nan_factor(steps) * ops.cast(bias, "float32")

    def bias_at(self, prepared: Any, query: Tensor, key: Tensor) -> Tensor:
        return prepared

    def bias_of_pair(
        self,
        parameters: Sequence[Tensor],
        query_position: Tensor,
        key_position: Tensor,
        *,
        causal: bool = False,
    ) -> Tensor:
        (window,) = parameters
        steps = key_position - query_position
        # NaN where a position is.
        return ops.where(ops.abs(steps) > window, HIDDEN, 0.0) + 0 * steps

    def make_pair_parameters(self, heads: int) -> Tensor:
        return ops.convert_to_tensor(self._find_windows(heads)[:, 0])

    def _find_windows(self, heads: int) -> Array:
        """Returns the largest visible distance of each head `(H, 1, 1)`."""
        windowed = self.windowed_heads or max(heads // 2, 1)
        windows = np.full((heads, 1, 1), np.inf, "float32")
        windows[:windowed, 0, 0] = np.arange(windowed)
        return windows
