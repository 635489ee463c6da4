"""Fixed bias computed from inner products of sinusoids."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_lengen.checks.arguments import LARGEST_WIDTH, Integer
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.base import AttentionSpec
from keras_lengen.layers.encodings.bias import BiasEncoding
from keras_lengen.layers.encodings.randomized import Randomized
from keras_lengen.layers.encodings.sinusoidal_encoding import (
    check_even,
    make_sinusoid,
)
from keras_lengen.types import Array, Positions, Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class Sandwich(BiasEncoding):
    """Penalises attention like the inner product of sinusoids (Sandwich).

    Head `h` of `H`, counted from 1, adds
    `H / (8 * h) * (sum(cos(d * 10000 ** (-2 * m / dimension))) -
    dimension / 2)` to its scores, where `d` is the difference of the positions
    and the sum runs over `m` from 0 to `dimension / 2 - 1`. The penalty grows
    roughly with the logarithm of the distance and is the same for past and
    future keys. The encoding has no weights and no longest length.

    Stage: `attention_bias`, float32 `(1 or B, H, T, S)`, added to scaled
    scores.
    Positions: any numbers, with or without gaps; only differences matter.

    Args:
        dimension: int, even, from 2 to `2 ** 16`. Width of the sinusoids,
            which does not depend on the width of the model.
        sampler: `PositionSampler`, or `None` for positions 0, 1, 2, ...

    Raises:
        ValueError: If `dimension` is odd or out of range.

    Differs from the paper: `dimension / 2` is subtracted, so that the bias at
    distance 0 is 0; the softmax cancels this constant. Future keys are
    penalised too, which changes only bidirectional models.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import Sandwich
    >>> bias = Sandwich()(ops.ones((1, 3, 8, 4)))
    >>> bias[0, 0, 0].numpy().round(2).tolist()
    [0.0, -1.9..., -6.6...]

    Reference: Chi et al., 2023. https://arxiv.org/abs/2212.10356
    """

    dimension: int = argument(
        Integer(
            2, LARGEST_WIDTH, example=32, what="the width of the sinusoids"
        ),
        default=128,
    )

    shift_invariant = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_even(self.dimension, "dimension")

    def prepare(
        self,
        query_positions: Positions,
        key_positions: Positions,
        spec: AttentionSpec,
    ) -> Any:
        # The cosine of a difference is a product of cosines plus a product of
        # sines, which a matrix product sums for all pairs.
        queries, keys = self.make_pair_features(query_positions, key_positions)
        similarity = ops.matmul(queries, ops.swapaxes(keys, -1, -2))
        penalties = ops.expand_dims(similarity - self.dimension / 2, 1)
        ratios = self._find_ratios(spec.heads)
        return ops.multiply(ratios[:, None, None], penalties)

    def make_pair_features(
        self, query_positions: Tensor, key_positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        queries, keys = (
            make_sinusoid(each, self.dimension, max_wavelength=10000)
            for each in (query_positions, key_positions)
        )
        if len(queries.shape) == 2:
            queries = ops.expand_dims(queries, 0)
        if len(keys.shape) == 2:
            keys = ops.expand_dims(keys, 0)
        return queries, keys

    def make_pair_parameters(self, heads: int) -> Tensor:
        return ops.convert_to_tensor(self._find_ratios(heads)[:, None])

    def bias_of_pair(
        self,
        parameters: Sequence[Tensor],
        query_position: Tensor,
        key_position: Tensor,
        *,
        causal: bool = False,
        product: Tensor = None,
    ) -> Tensor:
        (ratio,) = parameters
        return ratio * (product - self.dimension / 2)

    def _find_ratios(self, heads: int) -> Array:
        return heads / (8.0 * np.arange(1, heads + 1, dtype="float32"))

    def bias_at(self, prepared: Any, query: Tensor, key: Tensor) -> Tensor:
        return prepared


@keras.saving.register_keras_serializable(package="keras_lengen")
class RandomizedSandwich(Randomized, Sandwich):
    """`Sandwich` with randomized positions.

    Takes the arguments of `RandomizedPositions` and `Sandwich`.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import RandomizedSandwich
    >>> RandomizedSandwich(max_position=2048)(ops.ones((2, 5, 4, 8))).shape
    TensorShape([1, 4, 5, 5])

    Reference: Ruoss et al., 2023. https://arxiv.org/abs/2305.16843
    """
