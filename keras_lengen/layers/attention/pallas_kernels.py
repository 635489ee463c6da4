"""Kernels of fused attention, written in Pallas for TPUs.

A program computes the scores of a block of queries and a block of keys in the
fast memory of a chip, so that scores, biases, masks and dropout never go to its
main memory. Features stay in the layout of the projections, with all heads side
by side. A block has the features of a *group* of heads, which fill the 128
lanes of a vector; the other heads of the group are set to zero where one head
is meant, which costs nothing, because a matrix unit is 128 lanes wide too.

Reference: Dao et al., 2022, and Dao, 2023, for the order of the computation.
https://arxiv.org/abs/2205.14135, https://arxiv.org/abs/2307.08691
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from keras_lengen.layers.attention.fused_plan import LANES, Plan
from keras_lengen.layers.attention.pallas_blocks import (
    compute_backward,
    compute_forward,
)

Array = jax.Array

_QUERY_GRADIENT_BYTES = 2**22
"""Largest size of the gradients of queries that the backward pass keeps in the
fast memory."""


def attend(
    plan: Plan,
    query: Array,
    key: Array,
    value: Array,
    *,
    parameters: Array | None = None,
    query_positions: Array | None = None,
    key_positions: Array | None = None,
    query_features: Array | None = None,
    key_features: Array | None = None,
    key_mask: Array | None = None,
    query_ranks: Array | None = None,
    key_ranks: Array | None = None,
    seed: Array | None = None,
) -> tuple[Array, Array]:
    """Computes attention.

    Args:
        plan: `Plan`.
        query: Float array `(B, T, H, D)`.
        key: Float array `(B, S, key heads, D)`.
        value: Float array `(B, S, key heads, value width)`.
        parameters: Parameters of the bias, float32 `(H, P)`, if there is one.
        query_positions: float32 `(1 or B, T)`, if there is a bias.
        key_positions: float32 `(1 or B, S)`, if there is a bias.
        query_features: float32 `(1 or B, T, F)`, if the bias needs products of
            features; or `None`.
        key_features: float32 `(1 or B, S, F)`, or `None`.
        key_mask: Boolean array `(B, S)`, true for real keys, or `None`.
        query_ranks: int32 `(B, T)`, numbers of the queries among the real
            tokens, by which the window counts; or `None`.
        key_ranks: int32 `(B, S)`, those of the keys, or `None`.
        seed: int32 `(3,)`, if there is dropout: two random numbers and the
            index of the first example.

    Returns:
        Weighted sums of the values `(B, T, H, value width)`, zero for a query
        that sees no key, and the logarithms of the sums of the exponentials of
        the scores, float32 `(B, H, T)`.
    """
    batch, tokens = query.shape[:2]
    key_heads, repeats = plan.key_heads, plan.repeats
    query = _group_heads(plan, query)
    key, value = (array.reshape(*array.shape[:2], -1) for array in (key, value))
    if key_mask is not None:
        key_mask = key_mask.astype(jnp.int32)
    of_keys = [
        _take(*each, 0, plan.keys, plan.key_block)
        for each in (
            *((key, 1), (value, 1), (_as_row(key_positions), 2)),
            *((_as_row(key_ranks), 2), (_as_row(key_mask), 2)),
            (key_features, 1),
        )
    ]
    # Two axes, so that `jax.vmap` leaves the last two of a block whole.
    if parameters is not None:
        parameters = parameters.reshape(1, -1)
    if seed is not None:
        seed = seed.reshape(1, -1)
    most = _find_most_queries(plan)
    outputs, sums = [], []
    for start in range(0, tokens, most):
        size = min(most, tokens - start)
        part = dataclasses.replace(plan, tokens=size, first=plan.first + start)
        of_queries = [
            _take(*each, start, size, part.query_block)
            for each in (
                *((query, 2), (_as_row(query_positions), 2)),
                *((_as_row(query_ranks), 2), (query_features, 1)),
            )
        ]
        output, total = _attend_to_blocks(
            *(part, *of_queries, *of_keys, parameters, seed)
        )
        outputs.append(output[:, :, :size])
        sums.append(total[..., :size])
    output = jnp.concatenate(outputs, 2) if len(outputs) > 1 else outputs[0]
    total = jnp.concatenate(sums, -1) if len(sums) > 1 else sums[0]
    output = output.reshape(batch, repeats, tokens, key_heads, plan.value_width)
    output = jnp.moveaxis(output, 1, 3).reshape(
        batch, tokens, plan.heads, plan.value_width
    )
    total = total.reshape(batch, repeats, key_heads, tokens)
    return output, jnp.moveaxis(total, 1, 2).reshape(batch, plan.heads, tokens)


def _group_heads(plan: Plan, query: Array) -> Array:
    """Returns `(B, T, H, D)` as `(B, repeats, T, key heads * D)`."""
    batch, tokens = query.shape[:2]
    shape = plan.key_heads, plan.repeats, plan.width
    query = jnp.moveaxis(query.reshape(batch, tokens, *shape), 3, 1)
    return query.reshape(batch, plan.repeats, tokens, -1)


def _find_most_queries(plan: Plan) -> int:
    """Finds how many queries a call of the kernels computes at most.

    The backward pass keeps the gradients of all queries of a call.
    """
    row_bytes = 4 * plan.repeats * plan.group * plan.width
    return max(_QUERY_GRADIENT_BYTES // row_bytes // 512, 1) * 512


def _as_row(numbers: Array | None) -> Array | None:
    """Adds an axis to `(1 or B, T)`, for blocks `(1, rows)`."""
    return None if numbers is None else numbers[:, None]


def _take(
    array: Array | None, axis: int, start: int, size: int, multiple: int
) -> Array | None:
    """Takes a part of an axis, padded with zeros to a multiple."""
    if array is None:
        return None
    array = jax.lax.slice_in_dim(array, start, start + size, axis=axis)
    if size % multiple == 0:
        return array
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, -size % multiple)
    return jnp.pad(array, widths)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attend_to_blocks(plan: Plan, *operands: Array | None) -> Any:
    """Computes attention in whole blocks.

    Args:
        plan: `Plan`.
        *operands: Query `(B, repeats, T, key heads * D)`, and its positions
            `(1 or B, 1, T)`, ranks `(B, 1, T)` and features `(1 or B, T, F)`;
            key and value `(B, S, key heads * width)`, and their positions,
            ranks, mask and features; the parameters of the bias
            `(1, H * P)`; and the seed, int32 `(1, 3)`. All but query, key and
            value may be `None`.

    Returns:
        Output `(B, repeats, T, key heads * value width)` and logarithms of
        sums, float32 `(B, repeats, groups, heads of a group, T)`.
    """
    return _run_forward(plan, operands)


def _forward(plan: Plan, *operands: Array | None) -> Any:
    output, total = _run_forward(plan, operands)
    return (output, total), (operands, output, total)


def _backward(plan: Plan, saved: Any, gradients: Any) -> Any:
    operands, output, total = saved
    return _run_backward(plan, operands, output, total, *gradients)


_attend_to_blocks.defvjp(_forward, _backward)


_NAMES = (
    *("query", "query_positions", "query_ranks", "query_features"),
    *("key", "value", "key_positions", "key_ranks", "key_mask"),
    *("key_features", "parameters", "seed"),
)


def _make_specs(
    plan: Plan, operands: dict[str, Any], order: Callable[..., Any]
) -> list[pl.BlockSpec]:
    """Makes the blocks of operands.

    Args:
        plan: `Plan`.
        operands: Dict of the operands that are not `None`, by name.
        order: Function from the indices of a program to indices of the
            example, of the repeat, of the group of heads, of the block of
            queries and of the block of keys.
    """
    group = plan.group
    rows, columns = plan.query_block, plan.key_block
    widths = group * plan.width, group * plan.value_width

    def make(shape: tuple[Any, ...], pick: Callable[..., Any]) -> pl.BlockSpec:
        return pl.BlockSpec(shape, lambda *ids: pick(*order(*ids)))

    def make_row(name: str) -> pl.BlockSpec:
        own, axis = operands[name].shape[0] > 1, name.startswith("key")
        return make(
            (None, 1, columns if axis else rows),
            lambda b, r, g, *blocks: (b if own else 0, 0, blocks[axis]),
        )

    def make_features(name: str) -> pl.BlockSpec:
        own, axis = operands[name].shape[0] > 1, name.startswith("key")
        return make(
            (None, columns if axis else rows, operands[name].shape[-1]),
            lambda b, r, g, *blocks: (b if own else 0, blocks[axis], 0),
        )

    makers: dict[str, Callable[[], pl.BlockSpec]] = {
        "query": lambda: make(
            (None, None, rows, widths[0]), lambda b, r, g, i, j: (b, r, i, g)
        ),
        "key": lambda: make(
            (None, columns, widths[0]), lambda b, r, g, i, j: (b, j, g)
        ),
        "value": lambda: make(
            (None, columns, widths[1]), lambda b, r, g, i, j: (b, j, g)
        ),
        "parameters": lambda: pl.BlockSpec(memory_space=pltpu.SMEM),
        "seed": lambda: pl.BlockSpec(memory_space=pltpu.SMEM),
        "output": lambda: make(
            (None, None, rows, widths[1]), lambda b, r, g, i, j: (b, r, i, g)
        ),
        "output_gradient": lambda: make(
            (None, None, rows, widths[1]), lambda b, r, g, i, j: (b, r, i, g)
        ),
        "total": lambda: make(
            (None, None, None, group, rows),
            lambda b, r, g, i, j: (b, r, g, 0, i),
        ),
        "total_gradient": lambda: make(
            (None, None, None, group, rows),
            lambda b, r, g, i, j: (b, r, g, 0, i),
        ),
    }
    for name in ("query_features", "key_features"):
        makers[name] = functools.partial(make_features, name)
    for name in (
        *("query_positions", "query_ranks"),
        *("key_positions", "key_ranks", "key_mask"),
    ):
        makers[name] = functools.partial(make_row, name)
    return [makers[name]() for name in operands]


def _estimate_cost(
    plan: Plan,
    operands: dict[str, Any],
    shapes: dict[str, Any],
    *,
    products: int,
) -> pl.CostEstimate:
    """Estimates the cost of a kernel for the scheduler of the compiler.

    Args:
        plan: `Plan`.
        operands: Dict of operands by name.
        shapes: Dict of the shapes of the results by name.
        products: int, number of products of matrices for a pair of blocks.
    """
    batch, repeats, tokens, _ = operands["query"].shape
    blocks = [
        (i, j)
        for i in range(tokens // plan.query_block)
        for j in range(operands["key"].shape[1] // plan.key_block)
        if plan.meets(i, j, by_rank="query_ranks" in operands)
    ]
    pairs = len(blocks) * plan.query_block * plan.key_block
    pairs *= batch * repeats * plan.key_heads
    arrays = [*operands.values(), *shapes.values()]
    return pl.CostEstimate(
        flops=products * (plan.width + plan.value_width) * pairs,
        transcendentals=pairs,
        bytes_accessed=sum(a.size * a.dtype.itemsize for a in arrays),
    )


def _run_forward(plan: Plan, given: tuple[Array | None, ...]) -> Any:
    """Runs the forward kernel; see `_attend_to_blocks`."""
    operands: dict[str, Any] = {
        name: array
        for name, array in zip(_NAMES, given, strict=True)
        if array is not None
    }
    query, key = operands["query"], operands["key"]
    batch, repeats, tokens, _ = query.shape
    group, groups = plan.group, plan.key_heads // plan.group
    rows, columns = plan.query_block, plan.key_block
    key_blocks = key.shape[1] // columns
    shapes = {
        "output": _describe(
            (batch, repeats, tokens, plan.key_heads * plan.value_width),
            query.dtype,
        ),
        "total": _describe(
            (batch, repeats, groups, group, tokens), jnp.float32
        ),
    }

    def kernel(*refs: Any) -> None:
        named = dict(zip([*operands, *shapes], refs, strict=False))
        compute_forward(
            plan, named, refs[len(named) :], key_blocks, _read_ids()
        )

    def order(b: Any, r: Any, g: Any, i: Any, j: Any) -> tuple[Any, ...]:
        return b, r, g, i, _clamp(plan, i, j)

    return pl.pallas_call(
        kernel,
        grid=(batch, repeats, groups, tokens // rows, key_blocks),
        in_specs=_make_specs(plan, operands, order),
        out_specs=_make_specs(plan, shapes, lambda *ids: ids),
        out_shape=list(shapes.values()),
        scratch_shapes=[
            pltpu.VMEM((group, rows, 1), jnp.float32),
            pltpu.VMEM((group, rows, 1), jnp.float32),
            pltpu.VMEM((rows, group * plan.value_width), jnp.float32),
        ],
        interpret=plan.interpret,
        cost_estimate=_estimate_cost(plan, operands, shapes, products=2),
        name="fused_attention",
    )(*operands.values())


def _describe(shape: tuple[int, ...], dtype: Any) -> Any:
    """Describes a result by its shape and dtype."""
    describe: Any = jax.ShapeDtypeStruct
    return describe(shape, dtype)


def _read_ids() -> tuple[Array, ...]:
    return tuple(pl.program_id(axis) for axis in range(5))


def _clamp(plan: Plan, i: Any, j: Any) -> Any:
    """Finds the block of keys to load, the one before if `j` is not needed."""
    if not plan.reach.causal:
        return j
    last = plan.first + (i + 1) * plan.query_block - 1
    return jnp.minimum(j, jnp.maximum(last, 0) // plan.key_block)


def _run_backward(
    plan: Plan,
    given: tuple[Array | None, ...],
    output: Array,
    total: Array,
    output_gradient: Array,
    total_gradient: Array,
) -> tuple[Array | None, ...]:
    """Runs the backward kernel, and returns a gradient for each operand."""
    operands: dict[str, Any] = {
        name: array
        for name, array in zip(_NAMES, given, strict=True)
        if array is not None
    }
    operands |= {
        "output": output,
        "total": total,
        "output_gradient": output_gradient,
        "total_gradient": total_gradient,
    }
    batch, repeats, tokens, _ = operands["query"].shape
    group, groups = plan.group, plan.key_heads // plan.group
    rows, columns = plan.query_block, plan.key_block
    blocks = tokens // rows, operands["key"].shape[1] // columns
    widths = group * plan.width, group * plan.value_width
    shapes, specs = _describe_gradients(plan, operands)

    def kernel(*refs: Any) -> None:
        named = dict(zip([*operands, *shapes], refs, strict=False))
        b, g, j, r, i = _read_ids()
        compute_backward(
            plan, named, refs[len(named) :], blocks, (b, r, g, i, j)
        )

    def order(b: Any, g: Any, j: Any, r: Any, i: Any) -> tuple[Any, ...]:
        return b, r, g, i, j

    results = pl.pallas_call(
        kernel,
        grid=(batch, groups, blocks[1], repeats, blocks[0]),
        in_specs=_make_specs(plan, operands, order),
        out_specs=specs,
        out_shape=list(shapes.values()),
        scratch_shapes=[
            pltpu.VMEM((repeats, tokens, widths[0]), jnp.float32),
            pltpu.VMEM((columns, widths[0]), jnp.float32),
            pltpu.VMEM((columns, widths[1]), jnp.float32),
        ],
        interpret=plan.interpret,
        cost_estimate=_estimate_cost(plan, operands, shapes, products=5),
        name="fused_attention_gradient",
    )(*operands.values())
    gradients = dict(zip(shapes, results, strict=True))
    if plan.learned:
        sums = _sum_parameters(plan, gradients["parameters_result"])
        gradients["parameters_result"] = sums[:, : plan.parameters].reshape(
            1, -1
        )
    return tuple(gradients.get(f"{name}_result") for name in _NAMES)


def _describe_gradients(
    plan: Plan, operands: dict[str, Any]
) -> tuple[dict[str, Any], list[pl.BlockSpec]]:
    """Describes the results of the backward kernel, and their blocks."""
    query, key, value = (operands[name] for name in ("query", "key", "value"))
    batch, repeats, tokens, _ = query.shape
    group, groups = plan.group, plan.key_heads // plan.group
    columns = plan.key_block
    widths = group * plan.width, group * plan.value_width
    shapes = {
        "query_result": _describe(query.shape, query.dtype),
        "key_result": _describe(key.shape, key.dtype),
        "value_result": _describe(value.shape, value.dtype),
    }
    specs = [
        pl.BlockSpec(
            (None, repeats, tokens, widths[0]),
            lambda b, g, j, r, i: (b, 0, 0, g),
        ),
        *(
            pl.BlockSpec(
                (None, columns, width), lambda b, g, j, r, i: (b, j, g)
            )
            for width in widths
        ),
    ]
    if plan.learned:
        # Rows of whole vectors, of which the first are used.
        tile = (repeats, -(-group // 8) * 8, LANES)
        shapes["parameters_result"] = _describe(
            (batch, groups, *tile), jnp.float32
        )
        specs.append(
            pl.BlockSpec(
                (None, None, *tile), lambda b, g, j, r, i: (b, g, 0, 0, 0)
            )
        )
    return shapes, specs


def _sum_parameters(plan: Plan, tiles: Array) -> Array:
    """Sums gradients of parameters over the examples, to `(H, LANES)`."""
    sums = jnp.sum(tiles, axis=0)[:, :, : plan.group]
    # (groups, repeats, heads of a group, ...) to (H, ...).
    sums = jnp.moveaxis(sums, 1, 2)
    return sums.reshape(plan.heads, LANES)
