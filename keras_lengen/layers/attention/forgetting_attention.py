"""Attention with forget gates."""

import dataclasses
from typing import Any, ClassVar

import keras
from keras import ops

from keras_lengen.layers.attention.cache import Sizes
from keras_lengen.layers.attention.call import Call, Tensors
from keras_lengen.layers.attention.multi_head import MultiHeadAttention
from keras_lengen.layers.attention.scores import ScoreRule, Term
from keras_lengen.types import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class ForgettingAttention(MultiHeadAttention):
    """Lowers the scores of keys by the forget gates of the tokens after them.

    Each token `t` has a gate `f[t] = sigmoid(w . x[t] + b)` in every head,
    computed from its features `x[t]`. The score of query `i` and key `j`
    becomes

    `q[i] . k[j] / sqrt(D) + sum(log f[t] for t in j + 1 .. i)`,

    so that a gate near 0 hides all earlier keys from all later queries. Gates
    of 1 give ordinary attention, and constant gates give `ALiBi`. No other
    encoding is needed, but any is possible.

    Use it in place of `MultiHeadAttention`, for causal attention. Shapes are
    those of `MultiHeadAttention`.

    Weights in addition to those of `MultiHeadAttention`: the gates' map
    `(M, H)` and bias. With `num_key_value_heads`, heads that share keys share
    a gate. A cache also holds the gates.

    Args:
        num_heads: int, at least 1. Number of heads.
        key_dim: int, at least 1. Width of the queries and keys of a head.
        **kwargs: Further arguments of `MultiHeadAttention`. With a sliding
            window, a cache holds all keys.

    Call arguments: those of `MultiHeadAttention`.

    Raises:
        ValueError: If an argument is out of range, or neither
            `use_causal_mask` nor an `attention_mask` is given.

    Differs from the paper: the class is only the attention, without the other
    parts of the paper's "Pro" block, such as normalized outputs and shifted
    keys.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import ForgettingAttention
    >>> x = ops.ones((2, 10, 32))
    >>> ForgettingAttention(4, 8)(x, x, use_causal_mask=True).shape
    TensorShape([2, 10, 32])

    Reference: Lin et al., 2025, section 3. https://arxiv.org/abs/2503.02130
    """

    causal_only = True

    def __post_init__(self) -> None:
        # First, because the base asks for the parts.
        self.forget_dense: Any = None
        super().__post_init__()

    def build(
        self,
        query_shape: Shape,
        value_shape: Shape,
        key_shape: Shape | None = None,
    ) -> None:
        super().build(query_shape, value_shape, key_shape)
        with self.parts_scope():
            self.forget_dense = keras.layers.Dense(
                self.key_heads,
                kernel_initializer=keras.initializers.RandomNormal(stddev=0.02),
                dtype=self.dtype_policy,
                name="forget_gate",
            )
        self.forget_dense.build(value_shape if key_shape is None else key_shape)
        self.apply_dtype_policies()

    def make_scores(self, training: bool | None) -> ScoreRule:
        rule = super().make_scores(training)
        gates = ForgetGates(self.forget_dense, self.key_heads)
        return dataclasses.replace(rule, terms=(*rule.terms, gates))


@dataclasses.dataclass(frozen=True, eq=False)
class ForgetGates(Term):
    """The sums of the logarithms of the gates from each key to each query.

    The gate of the query counts, and that of the key does not. The sums are 0
    for keys that are not before the query.

    Attributes:
        dense: Layer that computes gates before their sigmoid.
        heads: int, number of gates of a token.
        scale: float, by which the sums are multiplied.
    """

    dense: Any
    heads: int
    scale: float = 1.0
    local: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return "forget gates"

    def cached_sizes(self) -> Sizes:
        return {"gate": (self.heads, 1)}

    def read_keys(self, inputs: Tensor) -> Tensors:
        return {"gate": ops.expand_dims(self.dense(inputs), -1)}

    def __call__(self, call: Call) -> Tensor:
        kept = ops.log_sigmoid(ops.cast(call.keys["gate"][..., 0], "float32"))
        mask = call.visible.padding
        if mask is not None:
            kept = ops.where(ops.expand_dims(mask, -1), kept, 0.0)
        # (B, S, H) to (B, H, S).
        kept = ops.transpose(kept, (0, 2, 1))
        sums = _sum_between(kept, call.indices)
        return sums if self.scale == 1 else sums * self.scale


def _sum_between(numbers: Tensor, indices: Tensor) -> Tensor:
    """Sums the numbers of the keys after each key, up to each query.

    Args:
        numbers: float32 `(B, H, S)`, none above 0.
        indices: Indices of the queries among the keys, int32 `(T,)`.

    Returns:
        float32 `(B, H, T, S)`, 0 for keys that are not before the query.
    """
    # A difference of two large sums would lose precision in long sequences.
    # Sums therefore have two parts: integers, whose differences are exact, and
    # what is left, which stays near 0 from token to token.
    integers = ops.round(ops.cumsum(numbers, axis=-1))
    integers = ops.stop_gradient(integers)
    before = ops.pad(integers, [[0, 0], [0, 0], [1, 0]])[..., :-1]
    rest = ops.cumsum(numbers - (integers - before), axis=-1)
    between = sum(
        ops.expand_dims(ops.take(summed, indices, axis=-1), -1)
        - ops.expand_dims(summed, -2)
        for summed in (integers, rest)
    )
    # Later keys, which a mask hides, must not have large scores.
    return ops.minimum(between, 0.0)
