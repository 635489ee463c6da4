"""Attention to the nearest matching key."""

import dataclasses
from typing import Any

import keras
from keras import ops

from keras_lengen.checks.constructors import argument
from keras_lengen.layers.attention.call import Call, Tensors
from keras_lengen.layers.attention.computation import (
    OF_SCORES,
    OF_WEIGHTS,
    OF_WINDOWS,
)
from keras_lengen.layers.attention.context import Context
from keras_lengen.layers.attention.multi_head import MultiHeadAttention
from keras_lengen.layers.attention.scores import Products, ScoreRule
from keras_lengen.layers.attention.visibility import Visibility
from keras_lengen.layers.attention.weights import WeightRule
from keras_lengen.types import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class GeometricAttention(MultiHeadAttention):
    """Attends to the nearest keys that match, wherever they are.

    A query `i` matches a key `j` with probability
    `P[i, j] = sigmoid(alpha * (q[i] + c) . k[j] + beta * D[i, j] + gamma)`,
    but never its own key. The attention weight is
    `A[i, j] = P[i, j] * prod(1 - P[i, n])`, where the product runs over the
    keys `n` that are nearer to `i` than `j`; of two keys at the same distance,
    the right one counts as nearer. `D` is the directional encoding: one
    learned map of the query's state for earlier keys and another one for later
    keys.

    Use it in place of `MultiHeadAttention`, for self-attention only. The only
    positions it uses are the indices of the tokens. Shapes are those of
    `MultiHeadAttention`.

    Weights in addition to those of `MultiHeadAttention`: `alpha`, `beta` and
    `gamma`, `c (H, D)`, and the directional map `(M, 2 H)` with a bias.

    Args:
        num_heads: int, at least 1. Number of heads.
        key_dim: int, at least 1. Width of the queries and keys of a head.
        normalize: bool, whether the weights of each query are scaled so that
            their sum is 1.
        **kwargs: Further arguments of `MultiHeadAttention`. `encoding` must be
            `None` or NoPE. Options of scores, sinks and windows have no effect
            here and raise an error.

    Call arguments: those of `MultiHeadAttention`; query, key and value must be
    the same tensor, and `positions` are ignored.

    Raises:
        ValueError: If an argument is out of range, there is an encoding or an
            option without effect, or query, key and value differ.

    Differs from the paper: dropout is applied to the weights, not to the keys.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import GeometricAttention
    >>> x = ops.ones((2, 10, 32))
    >>> GeometricAttention(4, 8)(x, x).shape
    TensorShape([2, 10, 32])

    Reference: Csordás et al., 2022, section 3. https://arxiv.org/abs/2110.07732
    """

    unused_options = (*OF_SCORES, *OF_WEIGHTS, *OF_WINDOWS)

    normalize: bool = argument(default=True)

    def __post_init__(self) -> None:
        # First, because the base asks for the parts.
        self.alpha = self.beta = self.gamma = self.content_bias = None
        self.direction_dense: Any = None
        super().__post_init__()
        if self.encoding.stage is not None:
            raise ValueError(
                "GeometricAttention has no use for encoding="
                f"{type(self.encoding).__name__}, because it has its own "
                "directional encoding: leave encoding out."
            )

    def build(
        self,
        query_shape: Shape,
        value_shape: Shape,
        key_shape: Shape | None = None,
    ) -> None:
        super().build(query_shape, value_shape, key_shape)
        with self.parts_scope():
            self.direction_dense = keras.layers.Dense(
                2 * self.num_heads, dtype=self.dtype_policy, name="direction"
            )
        self.direction_dense.build(query_shape)
        for name, value in (
            ("alpha", self.key_dim**-0.5),
            ("beta", 1.0),
            ("gamma", 0.0),
        ):
            weight = self.add_weight(
                name=name,
                shape=(),
                initializer=keras.initializers.Constant(value),
                autocast=False,
            )
            setattr(self, name, weight)
        self.content_bias = self.add_weight(
            name="content_bias",
            shape=(self.num_heads, self.key_dim),
            initializer="zeros",
            autocast=False,
        )
        self.apply_dtype_policies()

    def _project(
        self, query: Tensor, key: Tensor | None, value: Tensor | None
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        if key is not None and not (query is key and key is value):
            raise ValueError(
                "GeometricAttention is self-attention: query, key and value "
                "must be the same tensor."
            )
        return super()._project(query, key, value)

    def make_scores(self, training: bool | None) -> ScoreRule:
        return ScoreRule(
            Matches(
                *(self.alpha, self.beta, self.gamma),
                self.content_bias,
                self.direction_dense,
            )
        )

    def make_weights(self) -> WeightRule:
        return NearestMatch(self.normalize)


@dataclasses.dataclass(frozen=True, eq=False)
class Matches(Products):
    """Logits of the matches of queries and keys.

    Attributes:
        alpha: Factor of the products.
        beta: Factor of the query's preference for earlier or later keys.
        gamma: Number added to all logits.
        content_bias: `(H, D)`, added to the queries.
        direction_dense: Layer that computes the preferences.
    """

    alpha: Any
    beta: Any
    gamma: Any
    content_bias: Any
    direction_dense: Any

    def read_queries(self, inputs: Tensor, context: Context) -> Tensors:
        return {"directions": self.direction_dense(inputs)}

    def __call__(self, query: Tensor, key: Tensor, call: Call) -> Tensor:
        query = query + ops.cast(self.content_bias, "float32")
        products = ops.einsum("bthd,bshd->bhts", query, key)
        directions = ops.cast(call.queries["directions"], "float32")
        # (B, T, 2 H) to (B, 2 H, T, 1): earlier keys first, then later ones.
        directions = ops.expand_dims(ops.transpose(directions, (0, 2, 1)), -1)
        earlier, later = ops.split(directions, 2, axis=1)
        index = ops.arange(ops.shape(products)[-1], dtype="int32")
        before = index < ops.expand_dims(call.indices, -1)
        alpha, beta, gamma = (
            ops.cast(weight, "float32")
            for weight in (self.alpha, self.beta, self.gamma)
        )
        return (
            alpha * products + beta * ops.where(before, earlier, later) + gamma
        )


@dataclasses.dataclass(frozen=True)
class NearestMatch(WeightRule):
    """The share of each key is that it matches, and that no nearer one does.

    Attributes:
        normalize: bool, whether the weights of a query sum up to 1.
    """

    normalize: bool = True

    def __call__(self, scores: Tensor, visible: Visibility) -> Tensor:
        index = ops.arange(ops.shape(scores)[-1], dtype="int32")
        query_index = ops.expand_dims(visible.queries, -1)
        allowed = index != query_index
        mask = visible.mask()
        if mask is not None:
            allowed = ops.logical_and(allowed, mask)
        matches = ops.where(allowed, ops.log_sigmoid(scores), -1e30)
        misses = ops.where(allowed, ops.log_sigmoid(-scores), 0.0)
        # Logarithms of misses are summed from the query outwards, on each
        # side: differences of sums from one end would lose precision by
        # cancellation if scores are extreme.
        later = index > query_index
        right = ops.cumsum(ops.where(later, misses, 0.0), axis=-1)
        left = ops.where(later, 0.0, misses)
        left = ops.flip(ops.cumsum(ops.flip(left, axis=-1), axis=-1), axis=-1)
        # On the other side of the query, the nearer keys end at the mirror
        # image of j, which itself is nearer only if it is the right one.
        mirror = 2 * query_index - index
        nearer = _take_at(
            right, ops.where(later, index - 1, mirror)
        ) + _take_at(left, ops.where(later, mirror + 1, index + 1))
        weights = ops.exp(matches + nearer)
        if self.normalize:
            total = ops.sum(weights, axis=-1, keepdims=True)
            weights = weights / ops.maximum(total, 1e-9)
        return weights


def _take_at(summed: Tensor, places: Tensor) -> Tensor:
    """Reads the entries of `summed` at `places` along the last axis.

    Args:
        summed: float32 `(B, H, T, S)`.
        places: int32 `(T, S)`, clipped to `0 .. S - 1`.

    Returns:
        float32 `(B, H, T, S)`.
    """
    shape = ops.shape(summed)
    places = ops.clip(places, 0, shape[-1] - 1)
    places = ops.broadcast_to(places, shape)
    return ops.take_along_axis(summed, places, axis=-1)
