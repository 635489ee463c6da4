"""Computations of a block of queries and a block of keys in the kernels."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from keras_lengen.layers.attention.fused_plan import LANES, Plan, keeps

Array = jax.Array

HIDDEN_SCORE = -1e30
"""Score of a pair that a mask hides, below any bias."""

_UNROLLED = 4
"""Largest number of parameters for which the loop over heads is unrolled."""


@dataclasses.dataclass(frozen=True)
class Blocks:
    """A block of queries and a block of keys, inside of a kernel.

    Attributes:
        plan: `Plan`.
        refs: Dict of references to the operands.
        ids: Tuple of the indices of the example, of the repeat, of the group
            of heads, of the block of queries and of the block of keys.
    """

    plan: Plan
    refs: dict[str, Any]
    ids: tuple[Array, ...]

    @property
    def by_rank(self) -> bool:
        """Whether queries see keys by their ranks among real tokens."""
        return "query_ranks" in self.refs

    def meet(self) -> Any:
        """Whether some query sees some key, or `True`."""
        *_, i, j = self.ids
        return self.plan.meets(i, j, by_rank=self.by_rank)

    def find_indices(self) -> tuple[Array, Array]:
        """Returns the indices of the queries `(rows, 1)` and keys."""
        plan, (_, _, _, i, j) = self.plan, self.ids
        rows, columns = plan.query_block, plan.key_block
        queries = jax.lax.broadcasted_iota(jnp.int32, (rows, 1), 0)
        keys = jax.lax.broadcasted_iota(jnp.int32, (1, columns), 1)
        return plan.first + i * rows + queries, j * columns + keys

    def find_mask(self) -> Array | None:
        """Returns which keys queries see `(rows or 1, columns)`."""
        queries, keys = self.find_indices()
        if self.by_rank:
            mask = self.plan.reach.sees(
                self.refs["query_ranks"][...].reshape(-1, 1),
                self.refs["key_ranks"][...],
            )
        else:
            mask = self.plan.reach.sees(queries, keys)
        if self.plan.keys % self.plan.key_block:
            real = keys < self.plan.keys
            mask = real if mask is None else mask & real
        if "key_mask" in self.refs:
            real = self.refs["key_mask"][...] > 0
            mask = real if mask is None else mask & real
        return mask

    def find_head(self, number: int) -> Array:
        """Returns the index of the query head of a number in the group."""
        _, repeat, group, _, _ = self.ids
        key_head = group * self.plan.group + number
        return key_head * self.plan.repeats + repeat

    def for_each_head(self, function: Callable[[Any], None]) -> None:
        """Calls a function with the number of each head of the group."""
        if self.plan.parameters <= _UNROLLED:
            for number in range(self.plan.group):
                function(number)
            return

        def call(number: Array, carry: None) -> None:
            function(number)

        jax.lax.fori_loop(0, self.plan.group, call, None)

    def find_lanes(self, lanes: int, number: int) -> Array | None:
        """Finds the features of a head `(1, lanes)`, `None` for all."""
        if self.plan.group == 1:
            return None
        width = lanes // self.plan.group
        numbers = jax.lax.broadcasted_iota(jnp.int32, (1, lanes), 1)
        return (numbers >= number * width) & (numbers < (number + 1) * width)

    def pick(self, array: Array, number: int) -> Array:
        """Sets the features of all other heads of the group to zero."""
        own = self.find_lanes(array.shape[-1], number)
        if own is None:
            return array
        # Masks have the layout of float32.
        picked = jnp.where(own, array.astype(jnp.float32), 0.0)
        return picked.astype(array.dtype)

    def multiply_features(self) -> dict[str, Array]:
        """Computes the products of features that the bias of all heads needs.

        Returns:
            Dict of further arguments of the bias.
        """
        if "query_features" not in self.refs:
            return {}
        queries, keys = (
            self.refs[f"{name}_features"][...] for name in ("query", "key")
        )
        product = _multiply(
            queries, keys, 1, 1, precision=jax.lax.Precision.HIGHEST
        )
        return {"product": product}

    def compute_bias(
        self, number: int, products: dict[str, Array]
    ) -> tuple[Array, Any]:
        """Computes the bias of a head, and the function of its gradients."""
        refs = self.refs
        count = self.plan.parameters
        first = self.find_head(number) * count
        parameters = [refs["parameters"][0, first + p] for p in range(count)]
        queries = refs["query_positions"][...].reshape(-1, 1)
        keys = refs["key_positions"][...]

        bias: Any = self.plan.bias

        def compute(*parameters: Array) -> Array:
            return bias(parameters, queries, keys, **products)

        if not self.plan.learned:
            return compute(*parameters), None
        return jax.vjp(compute, *parameters)

    def compute_scores(
        self,
        query: Array,
        number: int,
        mask: Array | None,
        products: dict[str, Array],
    ) -> tuple[Array, Array | None, Any]:
        """Computes the masked scores of a head `(rows, columns)`.

        Args:
            query: Queries of the head, zero in the features of others.
            number: Number of the head in the group.
            mask: Which keys queries see, or `None`.
            products: What `multiply_features` returned.

        Returns:
            Scores; the derivative of capped scores, or `None`; and the
            function of the gradients of the bias, or `None`.
        """
        plan = self.plan
        scores = _multiply(query, self.refs["key"][...], 1, 1) * plan.scale
        slope = back = None
        if plan.soft_cap is not None:
            scores = jnp.tanh(scores / plan.soft_cap)
            slope = 1.0 - scores * scores
            scores = scores * plan.soft_cap
        if plan.bias is not None:
            bias, back = self.compute_bias(number, products)
            scores = scores + bias
        if mask is not None:
            scores = jnp.where(mask, scores, HIDDEN_SCORE)
        return scores, slope, back

    def drop(self, array: Array, number: int) -> Array:
        """Applies the dropout of attention weights to `(rows, columns)`."""
        rate = self.plan.dropout
        if not rate:
            return array
        seed = self.refs["seed"]
        kept = keeps(
            seed[0, 0],
            seed[0, 1],
            seed[0, 2] + self.ids[0],
            self.find_head(number),
            *self.find_indices(),
            rate=rate,
        )
        return jnp.where(kept, array * (1.0 / (1.0 - rate)), 0.0)


def _multiply(
    first: Array, second: Array, axis: int, other: int, precision: Any = None
) -> Array:
    """Multiplies matrices along an axis of each, with a float32 result."""
    return jax.lax.dot_general(
        first,
        second,
        (((axis,), (other,)), ((), ())),
        precision=precision,
        preferred_element_type=jnp.float32,
    )


def _to_row(column: Array) -> Array:
    """Turns a column `(rows, 1)` into a row `(1, rows)`.

    Not by a reshape, which TPUs v4 do not support.
    """
    whole = jnp.broadcast_to(column, (column.shape[0], LANES))
    return whole.T[:1]


def compute_forward(
    plan: Plan,
    refs: dict[str, Any],
    scratch: tuple[Any, ...],
    key_blocks: int,
    ids: tuple[Array, ...],
) -> None:
    """Adds a block of keys to the results of a block of queries.

    Args:
        plan: `Plan`.
        refs: Dict of references to operands and results.
        scratch: References to the largest scores of the queries so far, to
            the sums of exponentials of scores less these, and to the sums of
            values weighted by these exponentials.
        key_blocks: int, number of blocks of keys.
        ids: Indices of the program.
    """
    top_ref, total_ref, sums_ref = scratch
    blocks = Blocks(plan, refs, ids)
    j = ids[-1]

    @pl.when(j == 0)
    def start() -> None:
        top_ref[...] = jnp.full_like(top_ref, HIDDEN_SCORE)
        total_ref[...] = jnp.zeros_like(total_ref)
        sums_ref[...] = jnp.zeros_like(sums_ref)

    @pl.when(blocks.meet())
    def add() -> None:
        query, value = refs["query"][...], refs["value"][...]
        mask, products = blocks.find_mask(), blocks.multiply_features()

        def add_head(number: Any) -> None:
            scores, _, _ = blocks.compute_scores(
                blocks.pick(query, number), number, mask, products
            )
            before = top_ref[number]
            top = jnp.maximum(before, jnp.max(scores, axis=1, keepdims=True))
            weights = jnp.exp(scores - top)
            if mask is not None:
                weights = jnp.where(mask, weights, 0.0)
            kept = jnp.exp(before - top)
            top_ref[number] = top
            total_ref[number] = total_ref[number] * kept + jnp.sum(
                weights, axis=1, keepdims=True
            )
            weights = blocks.drop(weights, number).astype(value.dtype)
            picked = blocks.pick(value, number)
            own = blocks.find_lanes(picked.shape[-1], number)
            kept = kept if own is None else jnp.where(own, kept, 1.0)
            sums_ref[...] = sums_ref[...] * kept + _multiply(
                weights, picked, 1, 0
            )

        blocks.for_each_head(add_head)

    @pl.when(j == key_blocks - 1)
    def finish() -> None:
        _finish_forward(blocks, top_ref, total_ref, sums_ref[...])


def _finish_forward(
    blocks: Blocks, top_ref: Any, total_ref: Any, sums: Array
) -> None:
    """Writes the results of a block of queries; see `compute_forward`."""
    refs = blocks.refs
    output = jnp.zeros_like(sums)
    for number in range(blocks.plan.group):
        total = total_ref[number]
        # A query without keys gets zeros.
        empty = total == 0.0
        total = jnp.where(empty, 1.0, total)
        picked = blocks.pick(sums, number)
        output = output + picked / total
        logs = top_ref[number] + jnp.log(total)
        logs = jnp.where(empty, HIDDEN_SCORE, logs)
        refs["total"][pl.ds(number, 1), :] = _to_row(logs)
    refs["output"][...] = output.astype(refs["output"].dtype)


def compute_backward(
    plan: Plan,
    refs: dict[str, Any],
    scratch: tuple[Any, ...],
    counts: tuple[int, int],
    ids: tuple[Array, ...],
) -> None:
    """Adds the gradients of a block of queries and a block of keys.

    Args:
        plan: `Plan`.
        refs: Dict of references to operands and results.
        scratch: References to the sums of the gradients of all queries, of a
            block of keys and of a block of values.
        counts: Numbers of blocks of queries and of blocks of keys.
        ids: Tuple of indices as in `Blocks`.
    """
    query_ref, key_ref, value_ref = scratch
    blocks = Blocks(plan, refs, ids)
    _, r, _, i, j = ids
    rows = pl.ds(i * plan.query_block, plan.query_block)
    first_queries = (r == 0) & (i == 0)

    @pl.when(first_queries)
    def start_keys() -> None:
        key_ref[...] = jnp.zeros_like(key_ref)
        value_ref[...] = jnp.zeros_like(value_ref)

    @pl.when(j == 0)
    def start_queries() -> None:
        query_ref[r, rows, :] = jnp.zeros(
            (plan.query_block, query_ref.shape[-1]), jnp.float32
        )

    if plan.learned:

        @pl.when(first_queries & (j == 0))
        def start_parameters() -> None:
            result = refs["parameters_result"]
            result[...] = jnp.zeros_like(result)

    @pl.when(blocks.meet())
    def add() -> None:
        mask, products = blocks.find_mask(), blocks.multiply_features()

        def add_head(number: Any) -> None:
            query, key, value = _find_gradients(blocks, number, mask, products)
            query_ref[r, rows, :] += query
            key_ref[...] += key
            value_ref[...] += value

        blocks.for_each_head(add_head)

    @pl.when(j == counts[1] - 1)
    def finish_queries() -> None:
        result = refs["query_result"]
        result[r, rows, :] = query_ref[r, rows, :].astype(result.dtype)

    @pl.when((r == plan.repeats - 1) & (i == counts[0] - 1))
    def finish_keys() -> None:
        for name, sums in (("key", key_ref), ("value", value_ref)):
            result = refs[f"{name}_result"]
            result[...] = sums[...].astype(result.dtype)


def _find_gradients(
    blocks: Blocks,
    number: int,
    mask: Array | None,
    products: dict[str, Array],
) -> tuple[Array, Array, Array]:
    """Computes the gradients of a head, and adds those of its parameters.

    Returns:
        Gradients of the queries, keys and values of the blocks, float32, zero
        for other heads.
    """
    plan, refs = blocks.plan, blocks.refs
    query = blocks.pick(refs["query"][...], number)
    key = blocks.pick(refs["key"][...], number)
    value = refs["value"][...]
    gradient = blocks.pick(refs["output_gradient"][...], number)
    scores, slope, back = blocks.compute_scores(query, number, mask, products)
    total = refs["total"][pl.ds(number, 1), :].reshape(-1, 1)
    weights = jnp.exp(scores - total)
    if mask is not None:
        weights = jnp.where(mask, weights, 0.0)
    dropped = blocks.drop(weights, number).astype(gradient.dtype)
    value_gradient = _multiply(dropped, gradient, 0, 0)
    # The sum of weights times their gradients is that of outputs times theirs.
    mean = jnp.sum(
        gradient.astype(jnp.float32) * refs["output"][...].astype(jnp.float32),
        axis=1,
        keepdims=True,
    )
    mean = mean - refs["total_gradient"][pl.ds(number, 1), :].reshape(-1, 1)
    weight_gradient = blocks.drop(_multiply(gradient, value, 1, 1), number)
    score_gradient = weights * (weight_gradient - mean)
    if back is not None:
        _add_parameters(blocks, number, back(score_gradient))
    if slope is not None:
        score_gradient = score_gradient * slope
    score_gradient = (score_gradient * plan.scale).astype(query.dtype)
    return (
        _multiply(score_gradient, key, 1, 0),
        _multiply(score_gradient, query, 0, 0),
        value_gradient,
    )


def _add_parameters(
    blocks: Blocks, number: int, gradients: tuple[Array, ...]
) -> None:
    """Adds the gradients of a head's parameters to their vector."""
    lanes = jax.lax.broadcasted_iota(jnp.int32, (1, LANES), 1)
    vector = jnp.zeros((1, LANES), jnp.float32)
    for lane, gradient in enumerate(gradients):
        vector = jnp.where(lanes == lane, gradient, vector)
    result, repeat = blocks.refs["parameters_result"], blocks.ids[1]
    result[repeat, pl.ds(number, 1), :] += vector
