"""Attention in which each key takes a share of what nearer keys leave."""

import dataclasses

import keras
from keras import ops

from keras_lengen.checks.constructors import argument
from keras_lengen.layers.attention.computation import OF_WEIGHTS, OF_WINDOWS
from keras_lengen.layers.attention.multi_head import MultiHeadAttention
from keras_lengen.layers.attention.visibility import Visibility
from keras_lengen.layers.attention.weights import WeightRule
from keras_lengen.types import Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class StickBreakingAttention(MultiHeadAttention):
    """Attends to earlier keys, nearest first; each takes a share of the rest.

    With scores `z[i, j]`, as those of `MultiHeadAttention`, query `i` gives
    the earlier key `j` the weight

    `A[i, j] = sigmoid(z[i, j]) * prod(1 - sigmoid(z[i, u]))`,

    where the product runs over the keys `u` between `j` and `i`. The query's
    own key gets the remainder, so that the weights of a query sum to 1. Near
    keys come first, so the model can tell positions apart without an encoding.
    Keys beyond those that take everything have no weight, however many there
    are.

    Use it in place of `MultiHeadAttention`, for causal self-attention. Shapes
    and weights are those of `MultiHeadAttention`.

    Args:
        num_heads: int, at least 1. Number of heads.
        key_dim: int, at least 1. Width of the queries and keys of a head.
        attend_current: bool, whether the query's own key is the first one
            to take a share. In any case it gets the remainder.
        **kwargs: Further arguments of `MultiHeadAttention`, without sinks and
            a sliding window, which raise an error.

    Call arguments: those of `MultiHeadAttention`.

    Raises:
        ValueError: If an argument is out of range, or neither
            `use_causal_mask` nor an `attention_mask` is given. Later keys have
            no weight even if a mask allows them.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import StickBreakingAttention
    >>> x = ops.ones((2, 10, 32))
    >>> StickBreakingAttention(4, 8)(x, x, use_causal_mask=True).shape
    TensorShape([2, 10, 32])

    Reference: Tan et al., 2024, section 3. https://arxiv.org/abs/2410.17980
    """

    causal_only = True
    unused_options = (*OF_WEIGHTS, *OF_WINDOWS)

    attend_current: bool = argument(default=False)

    def make_weights(self) -> WeightRule:
        return StickBreaking(self.attend_current)


@dataclasses.dataclass(frozen=True)
class StickBreaking(WeightRule):
    """Each key takes a share of what the keys after it leave.

    Attributes:
        attend_current: bool, whether the query's own key takes one, too.
    """

    attend_current: bool = False

    def __call__(self, scores: Tensor, visible: Visibility) -> Tensor:
        index = ops.arange(ops.shape(scores)[-1], dtype="int32")
        query_index = ops.expand_dims(visible.queries, -1)
        current = index == query_index
        allowed = index < query_index
        if self.attend_current:
            allowed = ops.logical_or(allowed, current)
        mask = visible.mask()
        if mask is not None:
            allowed = ops.logical_and(allowed, mask)
        takes = ops.where(allowed, ops.log_sigmoid(scores), -1e30)
        leaves = ops.where(allowed, ops.log_sigmoid(-scores), 0.0)
        # Sums from the last key on, each without its own term: a sum with it,
        # less that term, would lose precision.
        summed = ops.cumsum(ops.flip(leaves, axis=-1), axis=-1)
        summed = ops.pad(summed, [[0, 0]] * 3 + [[1, 0]])
        summed = ops.flip(summed, axis=-1)
        weights = ops.exp(takes + summed[..., 1:])
        remainder = ops.exp(summed[..., :1])
        return weights + ops.where(current, remainder, 0.0)
