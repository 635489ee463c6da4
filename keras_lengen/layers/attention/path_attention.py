"""Attention along paths of Householder matrices."""

import dataclasses
from typing import Any, ClassVar

import keras
from keras import ops

from keras_lengen.checks.constructors import argument
from keras_lengen.layers.attention.cache import Sizes
from keras_lengen.layers.attention.call import Call, Tensors
from keras_lengen.layers.attention.context import Context
from keras_lengen.layers.attention.forgetting_attention import ForgetGates
from keras_lengen.layers.attention.multi_head import MultiHeadAttention
from keras_lengen.layers.attention.scores import Products, ScoreRule
from keras_lengen.layers.attention.windows import take_tokens
from keras_lengen.layers.documents import convolve_tokens
from keras_lengen.layers.encodings.gathers import exact_products
from keras_lengen.layers.real_tokens import order_real_tokens
from keras_lengen.types import Shape, Tensor

BLOCK = 64
"""Number of keys in a block, for sequences of at most 2,048 keys."""

MOST_BLOCKS = 32
"""Largest number of blocks. A program has operations for each, and the time to
compile it grows with their number."""

RANK = 32
"""Rank of the map from features to directions."""

CONVOLVED = 3
"""Number of tokens that a direction depends on."""


@keras.saving.register_keras_serializable(package="keras_lengen")
class PaTHAttention(MultiHeadAttention):
    """Multiplies keys by matrices of the tokens between them and the query.

    Each token `t` has a matrix `H[t] = I - beta[t] w[t] w[t]^T` in every head,
    computed from its features `x[t]`. The strength is
    `beta[t] = 2 sigmoid(u . x[t] + b)`. The direction `w[t]` comes from a
    linear map of rank 32 of `x[t - 2]`, `x[t - 1]` and `x[t]`, of which a
    convolution takes a weighted sum, feature by feature; its SiLU is divided by
    its length, with 1e-6 added to the squared length. The score of query `i`
    and key `j` becomes

    `q[i] . H[i] H[i - 1] ... H[j + 1] k[j] / sqrt(D)`.

    Such a product can follow a state, such as the order of swapped items,
    through the whole sequence. With `use_forget_gate`, the sum of
    `ForgettingAttention` is added to the scores, so that the exponential of a
    score is multiplied by the gates.

    Use it in place of `MultiHeadAttention`, for causal attention. Shapes are
    those of `MultiHeadAttention`. No other encoding is needed, but any is
    possible, except those whose keys are wider than `key_dim`. The matrices of
    padding, which a mask of the keys excludes, are `I`, and convolutions skip
    it.

    Weights in addition to those of `MultiHeadAttention`: the maps of the
    directions, `(M, 32)` and `(32, H * D)`, their convolution `(3, H, D)`, and
    the map `u (M, H)` and bias `b` of the strengths; with `use_forget_gate`,
    the gates' map `(M, H)` and bias. With `num_key_value_heads`, heads that
    share keys share all of these.

    The products are exact. They are computed in blocks of 64 keys, or of
    `S / 32` keys in sequences of more than 2,048, with a system of linear
    equations for each block. The results take as many numbers for each key and
    head as a block has keys. If the number of keys is not known when a program
    is traced, all keys are one block, and time grows with `S ** 3`.

    A cache also holds each token's map before the convolution, `u . x + b`,
    and the gate, if there is one.
    Each call with a cache solves the equations of all its entries, so a step of
    generation takes several times as long as that of `ForgettingAttention`.

    Args:
        num_heads: int, at least 1. Number of heads.
        key_dim: int, at least 1. Width of the queries and keys of a head.
        use_forget_gate: bool, whether tokens also have forget gates.
        scale_gates: bool, whether the sum of the gates is divided by `sqrt(D)`
            like the product, as in the authors' code; needs
            `use_forget_gate`.
        **kwargs: Further arguments of `MultiHeadAttention`. With a sliding
            window, a cache holds all keys.

    Call arguments: those of `MultiHeadAttention`.

    Raises:
        ValueError: If an argument is out of range, `scale_gates` is true
            without `use_forget_gate`, the encoding makes keys wider, or neither
            `use_causal_mask` nor an `attention_mask` is given.

    Differs from the authors' code: unless `scale_gates` is true, gates multiply
    the exponential of a score as in the paper and in `ForgettingAttention`.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import PaTHAttention
    >>> x = ops.ones((2, 10, 32))
    >>> PaTHAttention(4, 8)(x, x, use_causal_mask=True).shape
    TensorShape([2, 10, 32])

    Reference: Yang et al., 2025, section 3. https://arxiv.org/abs/2505.16381
    """

    causal_only = True

    use_forget_gate: bool = argument(default=False)
    scale_gates: bool = argument(default=False)

    def __post_init__(self) -> None:
        # First, because the base asks for the parts.
        self.rank_dense = self.direction_dense = self.strength_dense = None
        self.forget_dense = self.convolution = None
        super().__post_init__()
        if self.encoding.num_rotations > 1:
            raise ValueError(
                "PaTHAttention has no use for encoding="
                f"{type(self.encoding).__name__}, whose keys are wider than "
                "key_dim: choose another encoding, such as RoPE, or none."
            )
        if self.scale_gates and not self.use_forget_gate:
            raise ValueError(
                "scale_gates=True scales the sum of forget gates, but there "
                "are none: set use_forget_gate=True too."
            )

    def build(
        self,
        query_shape: Shape,
        value_shape: Shape,
        key_shape: Shape | None = None,
    ) -> None:
        super().build(query_shape, value_shape, key_shape)
        shape = value_shape if key_shape is None else key_shape
        heads = self.key_heads
        self.rank_dense = self._add_map("rank", RANK, shape)
        self.direction_dense = self._add_map(
            "direction", heads * self.key_dim, (*shape[:-1], RANK)
        )
        self.strength_dense = self._add_map(
            "strength", heads, shape, use_bias=True
        )
        if self.use_forget_gate:
            self.forget_dense = self._add_map(
                *("forget_gate", heads, shape),
                use_bias=True,
                kernel_initializer=keras.initializers.RandomNormal(stddev=0.02),
            )
        limit = CONVOLVED**-0.5
        self.convolution = self.add_weight(
            name="convolution",
            shape=(CONVOLVED, heads, self.key_dim),
            initializer=keras.initializers.RandomUniform(-limit, limit),
            autocast=False,
        )
        self.apply_dtype_policies()

    def _add_map(
        self,
        name: str,
        width: int,
        shape: Shape,
        *,
        use_bias: bool = False,
        **arguments: Any,
    ) -> keras.layers.Dense:
        with self.parts_scope():
            dense = keras.layers.Dense(
                *(width, None, use_bias),
                dtype=self.dtype_policy,
                name=name,
                **arguments,
            )
        dense.build(shape)
        return dense

    def make_scores(self, training: bool | None) -> ScoreRule:
        rule = super().make_scores(training)
        heads = self.key_heads
        terms = rule.terms
        if self.use_forget_gate:
            scale = self.key_dim**-0.5 if self.scale_gates else 1.0
            terms = (*terms, ForgetGates(self.forget_dense, heads, scale))
        products = ProductsAlongPaths(
            *(self.rank_dense, self.direction_dense, self.strength_dense),
            self.convolution,
            *(heads, self.key_dim),
        )
        return dataclasses.replace(rule, products=products, terms=terms)


@dataclasses.dataclass(frozen=True, eq=False)
class ProductsAlongPaths(Products):
    """Products of queries, the matrices up to them, and keys.

    Attributes:
        rank_dense: Layer that maps features to rank 32.
        direction_dense: Layer that maps these to directions.
        strength_dense: Layer that computes strengths before their sigmoid.
        convolution: Variable `(3, heads, D)`.
        heads: int, number of heads of the keys.
        width: int, width of the keys.
    """

    rank_dense: Any
    direction_dense: Any
    strength_dense: Any
    convolution: Any
    heads: int
    width: int
    local: ClassVar[bool] = False
    mixes: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return "the products of PaTHAttention"

    def cached_sizes(self) -> Sizes:
        return {
            "direction": (self.heads, self.width),
            "strength": (self.heads, 1),
        }

    def read_keys(self, inputs: Tensor) -> Tensors:
        features = self.direction_dense(self.rank_dense(inputs))
        shape = (*ops.shape(features)[:2], self.heads, self.width)
        return {
            "direction": ops.reshape(features, shape),
            "strength": ops.expand_dims(self.strength_dense(inputs), -1),
        }

    def resolve(
        self, query: Tensor, keys: Tensors, context: Context
    ) -> tuple[Tensor, Tensors]:
        """Solves the equations of the blocks, once for all queries."""
        keys, mask = dict(keys), context.visible.padding
        strengths = ops.cast(keys.pop("strength"), "float32")
        strengths = 2 * ops.sigmoid(strengths)
        if mask is not None:
            strengths = ops.where(ops.expand_dims(mask, (2, 3)), strengths, 0.0)
        features = keys.pop("direction")
        directions = self._find_directions(features, mask, context.runs)
        key = ops.cast(keys["key"], "float32")
        solved = solve_blocks(key, directions, strengths)
        return query, keys | dict(zip(_SOLVED, solved, strict=True))

    def __call__(self, query: Tensor, key: Tensor, call: Call) -> Tensor:
        solved = tuple(call.keys[name] for name in _SOLVED)
        return multiply_along_paths(query, key, solved, call.indices)

    def _find_directions(
        self,
        features: Tensor,
        mask: Tensor | None,
        runs: Tensor | None,
    ) -> Tensor:
        """Computes the vectors `w` of tokens.

        Args:
            features: Maps of the tokens, `(B, S, heads, D)`.
            mask: Boolean tensor `(B, S)`, true for real tokens, or `None`.
            runs: Run of each token, int32 `(B, S)`, or `None`.

        Returns:
            float32 `(B, S, heads, D)`.
        """
        features, moved = ops.cast(features, "float32"), None
        if mask is not None:
            order = order_real_tokens(mask)
            moved = ops.argsort(order, axis=-1)
            features = take_tokens(features, order)
            if runs is not None:
                runs = take_tokens(runs, order)
        # The last row of the kernel belongs to the token itself.
        kernel = ops.flip(ops.cast(self.convolution, "float32"), axis=0)
        features = ops.silu(convolve_tokens(features, kernel, runs))
        square = ops.sum(ops.square(features), axis=-1, keepdims=True)
        directions = features * ops.rsqrt(square + 1e-6)
        return directions if moved is None else take_tokens(directions, moved)


_SOLVED = ("directions", "of_vectors", "of_keys")
"""Names of the results of `solve_blocks`."""


def solve_blocks(
    key: Tensor, directions: Tensor, strengths: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Solves the equations of the products of matrices in each block of keys.

    On the way from the first token of a block to its last one, the matrix of
    token `t` takes `beta[t] w[t] a[t]` from a vector `x`, where

    `a[t] = w[t] . x - sum(beta[s] (w[t] . w[s]) a[s] for s before t)`.

    The matrices after a token `j` do this to its key: the same equations, with
    zeros in place of `w[t] . x` up to `j`. All of them have one triangular
    matrix.

    Args:
        key: float32 `(B, S, heads, D)`.
        directions: Vectors `w`, float32 `(B, S, heads, D)`.
        strengths: Numbers `beta`, float32 `(B, S, heads, 1)`.

    Returns:
        The directions, with zeros at the end that fill the last block,
        `(B, S', heads, D)`; `beta[t] a[t]` for the unit vectors as `x`,
        `(B, S', heads, D)`; and `beta[t] a[t]` for the keys of the block of
        `t`, `(B, S', heads, size of a block)`.
    """
    batch_size, tokens, heads, width = ops.shape(key)
    size, blocks, padding = tokens, 1, 0
    if isinstance(tokens, int):
        if tokens > BLOCK:
            size = BLOCK * -(-tokens // (BLOCK * MOST_BLOCKS))
        size = max(size, 1)
        blocks = max(-(-tokens // size), 1)
        padding = blocks * size - tokens

    def split(tensor: Tensor) -> Tensor:
        # (B, S, heads, width) to (B, blocks, heads, size, width).
        if padding:
            tensor = ops.pad(tensor, [[0, 0], [0, padding], [0, 0], [0, 0]])
        shape = (batch_size, blocks, size, heads, tensor.shape[-1])
        return ops.swapaxes(ops.reshape(tensor, shape), 2, 3)

    def join(tensor: Tensor) -> Tensor:
        shape = (batch_size, tokens + padding, heads, ops.shape(tensor)[-1])
        return ops.reshape(ops.swapaxes(tensor, 2, 3), shape)

    key, directions, strengths = map(split, (key, directions, strengths))
    index = ops.arange(size, dtype="int32")
    before = index < ops.expand_dims(index, -1)
    own = ops.cast(index == ops.expand_dims(index, -1), "float32")
    with exact_products():
        # One product for both parts.
        products = ops.matmul(
            directions,
            ops.swapaxes(
                ops.concatenate([directions * strengths, key], axis=-2), -1, -2
            ),
        )
        between, of_keys = products[..., :size], products[..., size:]
        matrix = ops.where(before, between, own)
        right = ops.concatenate(
            [directions, ops.where(before, of_keys, 0.0)], axis=-1
        )
        solved = strengths * ops.linalg.solve_triangular(
            matrix, right, lower=True
        )
    return (
        join(directions),
        join(solved[..., :width]),
        join(solved[..., width:]),
    )


def multiply_along_paths(
    query: Tensor,
    key: Tensor,
    solved: tuple[Tensor, Tensor, Tensor],
    indices: Tensor,
) -> Tensor:
    """Computes `q[i] . H[i] ... H[j + 1] k[j]` for all queries and keys.

    Args:
        query: float32 `(B, T, H, D)`.
        key: float32 `(B, S, H, D)`.
        solved: Results of `solve_blocks`, for as many heads.
        indices: Indices of the queries among the keys, int32 `(T,)`.

    Returns:
        float32 `(B, H, T, S)`; `q[i] . k[j]` for keys after the query.
    """
    directions, of_vectors, of_keys = solved
    tokens, size = ops.shape(key)[1], of_keys.shape[-1]
    starts = [0]
    if isinstance(size, int):
        starts = list(range(0, directions.shape[1], size))
        if directions.shape[1] != tokens:
            padding = directions.shape[1] - tokens
            key = ops.pad(key, [[0, 0], [0, padding], [0, 0], [0, 0]])
    else:
        size = ops.shape(of_keys)[-1]
    indices = ops.expand_dims(indices, -1)
    products: list[Tensor] = []
    # From the last block to the first one, each query is multiplied by the
    # matrices of the blocks.
    for start in reversed(starts):
        block = slice(start, start + size)
        shares = ops.einsum("bthd,bshd->bhts", query, directions[:, block])
        passed = start + ops.arange(size, dtype="int32") <= indices
        shares = ops.where(passed, shares, 0.0)
        products.append(
            ops.einsum("bthd,bshd->bhts", query, key[:, block])
            - ops.einsum("bhts,bshk->bhtk", shares, of_keys[:, block])
        )
        query = query - ops.einsum(
            "bhts,bshd->bthd", shares, of_vectors[:, block]
        )
    return ops.concatenate(products[::-1], axis=-1)[..., :tokens]
