"""Linear biases in half of the heads, and no positions in the other half."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_lengen.layers.encodings.base import AttentionSpec
from keras_lengen.layers.encodings.bias import BiasEncoding
from keras_lengen.layers.encodings.distances import (
    add_head_axis,
    find_signed_distances,
)
from keras_lengen.types import Array, Positions, Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class NAPE(BiasEncoding):
    """Penalises distance in half of the heads; the others have no positions.

    The first half of the heads, but at least one, add `-distance / (h + 1)` to
    the scores of head `h`, where `distance` is
    `|query_position - key_position|`. The other half have no positional
    encoding. The slopes are fixed, so the encoding has no weights and no
    longest length.

    Stage: `attention_bias`, float32 `(1 or B, H, T, S)`, added to scaled
    scores: 0 for heads without positions.
    Positions: any numbers, with or without gaps; only differences matter.

    Args:
        sampler: `PositionSampler`, or `None` for positions 0, 1, 2, ...

    Differs from the paper: future keys are penalised too, which changes only
    bidirectional models. The paper also has sparse weights and an adaptive
    scale of the scores of the heads without positions, for which attention
    layers have `use_entmax` and `score_factor="adaptive"`; here, the scale is
    for the products of all heads.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import NAPE
    >>> bias = NAPE()(ops.ones((1, 3, 4, 8)), causal=True)
    >>> bias[0, :, 2].numpy().tolist()
    [[-2.0, -1.0, -0.0], [-1.0, -0.5, -0.0], [-0.0, -0.0, -0.0], ...]

    Reference: Vasylenko et al., 2025. https://arxiv.org/abs/2506.16640
    """

    shift_invariant = True

    def prepare(
        self,
        query_positions: Positions,
        key_positions: Positions,
        spec: AttentionSpec,
    ) -> Any:
        steps = find_signed_distances(
            query_positions, key_positions, "positions"
        )
        slopes = _make_slopes(spec.heads)[:, None, None]
        return _penalize(slopes, add_head_axis(steps))

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
        (slope,) = parameters
        return _penalize(slope, key_position - query_position)

    def make_pair_parameters(self, heads: int) -> Tensor:
        return ops.convert_to_tensor(_make_slopes(heads)[:, None])


def _penalize(slopes: Any, steps: Tensor) -> Tensor:
    return ops.multiply(-slopes, ops.abs(steps))


def _make_slopes(heads: int) -> Array:
    """Makes the slopes of the heads, float32 `(H,)`."""
    biased = max(heads // 2, 1)
    slopes = np.zeros(heads, "float32")
    slopes[:biased] = 1 / np.arange(1, biased + 1)
    return slopes
