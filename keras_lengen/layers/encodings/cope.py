"""Positions that count tokens chosen by their content."""

from typing import Any

import keras
from keras import ops

from keras_lengen.checks.arguments import Integer
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.base import AttentionSpec
from keras_lengen.layers.encodings.bias import BiasEncoding
from keras_lengen.layers.encodings.distances import (
    find_signed_distances,
    make_nan_factor,
)
from keras_lengen.layers.encodings.gathers import (
    avoids_gathers,
    exact_products,
)
from keras_lengen.layers.positions.ordinal_positions import OrdinalPositions
from keras_lengen.types import InputShape, Positions, Tensor

MOST_SUMMED = 1024
"""Largest number of keys whose gates a product of matrices sums, on JAX."""


@keras.saving.register_keras_serializable(package="keras_lengen")
class CoPE(BiasEncoding):
    """Counts the tokens between a query and a key that matter to the query.

    Each query `i` gives every key `u` up to its own a gate
    `g[i, u] = sigmoid(q[i] . k[u] / sqrt(D))`. The position of key `j`, as seen
    by the query, is the sum of the gates from `j` to `i`, at most
    `num_positions - 1`. A head can therefore count words or lines instead of
    tokens. The bias is `q[i] . E[position] / sqrt(D)`, where `E` has a learned
    vector for each integer position and is interpolated linearly between them.

    Stage: `attention_bias`, float32 `(B, H, T, S)`, added to scaled scores.
    Weights: `(D, num_positions)`, by default in each layer, initially zero.
    Positions: any numbers, which have no effect. Tokens are counted in their
    order, without padding.

    Args:
        num_positions: int, from 1 to `2 ** 16`. Number of learned vectors. All
            keys with larger positions share the last one.
        share_layers: bool, whether all layers share the vectors.
        sampler: `None`, because tokens are counted by the encoding itself.

    Raises:
        ValueError: If an argument is out of range, or there is a sampler; in
            attention, if neither a causal mask nor an `attention_mask` is
            given.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import CoPE
    >>> CoPE()(ops.ones((2, 3, 8, 4)), causal=True).shape
    TensorShape([2, 8, 3, 3])

    Reference: Golovneva et al., 2024, section 4 (with the scaled logits of the
    authors' code). https://arxiv.org/abs/2405.18719
    """

    num_positions: int = argument(Integer(most=2**16, example=3), default=64)
    share_layers: bool = argument(default=False)

    causal_only = True
    shift_invariant = True
    uses_token_index = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.sampler, OrdinalPositions):
            raise ValueError(
                f"sampler={type(self.sampler).__name__} has no use in CoPE, "
                "which counts tokens by their content: leave sampler out."
            )

    def build(
        self, query_shape: InputShape, key_shape: InputShape | None = None
    ) -> None:
        super().build(query_shape, key_shape)
        self.table = self.add_weight(
            name="table",
            shape=(query_shape[-1], self.num_positions),
            initializer="zeros",
            autocast=False,
        )

    def prepare(
        self,
        query_positions: Positions,
        key_positions: Positions,
        spec: AttentionSpec,
    ) -> Any:
        return find_signed_distances(
            query_positions, key_positions, "positions"
        )

    def bias_at(self, prepared: Any, query: Tensor, key: Tensor) -> Tensor:
        steps = prepared
        if key.shape[1] == 0:
            # No axis of keys to read from.
            batch_size, tokens, heads, _ = ops.shape(query)
            return ops.zeros((batch_size, heads, tokens, 0), dtype="float32")
        query = ops.cast(query, "float32") * query.shape[-1] ** -0.5
        key = ops.cast(key, "float32")
        gates = ops.sigmoid(ops.einsum("bthd,bshd->bhts", query, key))
        # Positions are indices, and padding is later than all queries.
        gates = gates * ops.cast(ops.expand_dims(steps, -3) <= 0, "float32")
        positions = ops.minimum(_sum_later(gates), self.num_positions - 1.0)
        logits = ops.einsum(
            "bthd,dn->bhtn", query, ops.cast(self.table, "float32")
        )
        return make_nan_factor(steps) * _interpolate(logits, positions)


def _sum_later(gates: Tensor) -> Tensor:
    """Sums the gates `(B, H, T, S)` of each key and all later ones."""
    keys = gates.shape[-1]
    known = isinstance(keys, int) and keys <= MOST_SUMMED
    if known and keras.backend.backend() == "jax":
        # TPUs compute a cumulative sum in many passes over the gates.
        number = ops.arange(keys, dtype="int32")
        later = ops.expand_dims(number, -1) >= number
        with exact_products():
            return ops.matmul(gates, ops.cast(later, "float32"))
    return ops.flip(ops.cumsum(ops.flip(gates, axis=-1), axis=-1), axis=-1)


def _interpolate(logits: Tensor, positions: Tensor) -> Tensor:
    """Interpolates between the logits of whole positions.

    Args:
        logits: float32 `(B, H, T, num_positions)`.
        positions: float32 `(B, H, T, S)`, from 0 to `num_positions - 1`.

    Returns:
        float32 `(B, H, T, S)`.
    """
    if avoids_gathers():
        # A gather takes TPUs a hundred times as long. XLA computes the sum
        # without the tensor of its terms.
        whole = ops.arange(logits.shape[-1], dtype="float32")
        steps = ops.abs(
            ops.expand_dims(positions, -2) - ops.expand_dims(whole, -1)
        )
        shares = ops.where(steps < 1, 1 - steps, 0.0)
        # As with the gather, whole positions have no slope.
        shares = ops.where(steps == 0, 1.0, shares)
        return ops.sum(shares * ops.expand_dims(logits, -1), axis=-2)
    below = ops.floor(positions)
    low, high = (
        ops.take_along_axis(logits, ops.cast(index, "int32"), axis=-1)
        for index in (below, ops.ceil(positions))
    )
    share = positions - below
    return share * high + (1 - share) * low
