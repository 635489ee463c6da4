"""Attention over some axes of inputs with more than three axes.

All other axes are folded into the batch before attention, and unfolded after
it.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_lengen.checks.inputs import check_rank, find_static_size
from keras_lengen.layers.attention.call_arguments import CallArguments
from keras_lengen.types import Shape, Size, Tensor


@dataclasses.dataclass(frozen=True, eq=False)
class FoldedAxes:
    """The axes of a call of attention whose inputs have more than three.

    Attributes:
        over: Indices of the attention axes, a tuple of ints.
        others: Indices of the axes that are folded into the batch, besides
            the first, a tuple of ints.
        query_shape: Sizes of the query's axes, without the last one.
        value_shape: Sizes of the value's axes, without the last one.
    """

    over: tuple[int, ...]
    others: tuple[int, ...]
    query_shape: tuple[Any, ...]
    value_shape: tuple[Any, ...]

    @property
    def batch_size(self) -> Size:
        """Number of examples, before other axes are folded into the batch."""
        return self.query_shape[0]

    @property
    def other_sizes(self) -> tuple[Any, ...]:
        """Sizes of the axes that are folded into the batch."""
        return tuple(self.query_shape[axis] for axis in self.others)

    @property
    def query_sizes(self) -> tuple[Any, ...]:
        """Sizes of the attention axes of the query."""
        return tuple(self.query_shape[axis] for axis in self.over)

    @property
    def value_sizes(self) -> tuple[Any, ...]:
        """Sizes of the attention axes of the value."""
        return tuple(self.value_shape[axis] for axis in self.over)

    def fold(self, tensor: Tensor) -> Tensor:
        """Folds axes of `(B, ..., M)`, or of a mask `(B, ...)`.

        Returns:
            `(B', T, M)` or `(B', T)`, with `B'` the product of the sizes of
            the batch and the other axes, and `T` that of the attention axes.
        """
        axes = (0, *self.others, *self.over)
        last = tuple(range(len(axes), len(tensor.shape)))
        shape = ops.shape(tensor)
        if axes != tuple(range(len(axes))):
            tensor = ops.transpose(tensor, (*axes, *last))
        batch = math.prod(shape[axis] for axis in (0, *self.others))
        tokens = math.prod(shape[axis] for axis in self.over)
        return ops.reshape(
            tensor, (batch, tokens, *(shape[axis] for axis in last))
        )

    def fold_specs(
        self, *tensors: keras.KerasTensor | None
    ) -> list[keras.KerasTensor | None]:
        """Folds symbolic tensors; those that are one stay one."""

        def multiply(sizes: list[int | None]) -> int | None:
            known = [size for size in sizes if size is not None]
            return math.prod(known) if len(known) == len(sizes) else None

        specs: dict[int, keras.KerasTensor] = {}
        for tensor in tensors:
            if tensor is not None and id(tensor) not in specs:
                sizes = tensor.shape
                shape = (
                    multiply([sizes[axis] for axis in (0, *self.others)]),
                    multiply([sizes[axis] for axis in self.over]),
                    sizes[-1],
                )
                specs[id(tensor)] = keras.KerasTensor(shape, tensor.dtype)
        return [specs.get(id(tensor)) for tensor in tensors]

    def unfold(self, output: Tensor) -> Tensor:
        """Returns `(B', T, ...)` as `(B, ..., ...)`, like the query."""
        sizes = (self.batch_size, *self.other_sizes, *self.query_sizes)
        last = ops.shape(output)[2:]
        output = ops.reshape(output, (*sizes, *last))
        axes = (0, *self.others, *self.over)
        if axes == tuple(range(len(axes))):
            return output
        order = [axes.index(axis) for axis in range(len(axes))]
        order += range(len(axes), len(axes) + len(last))
        return ops.transpose(output, order)

    def unfold_weights(self, weights: Tensor) -> Tensor:
        """Returns attention weights `(B', H, T, S)` with all their axes."""
        return ops.reshape(weights, self.list_weight_sizes(weights.shape[1]))

    def list_weight_sizes(self, heads: int) -> tuple[Any, ...]:
        """Lists the sizes of the axes of attention weights."""
        return (
            *(self.batch_size, *self.other_sizes, heads),
            *(*self.query_sizes, *self.value_sizes),
        )

    def repeat(self, rows: Any) -> Any:
        """Repeats rows `(B, ...)` for the axes that are folded into the batch.

        Args:
            rows: Tensor with an axis of examples, or something else.

        Returns:
            `(B', ...)`; the argument if it has no axis of examples.
        """
        if not self.others or len(getattr(rows, "shape", ())) != 2:
            return rows
        copies = math.prod(self.other_sizes)
        rows = ops.expand_dims(ops.convert_to_tensor(rows), 1)
        count, _, size = ops.shape(rows)
        rows = ops.broadcast_to(rows, (count, copies, size))
        return ops.reshape(rows, (count * copies, size))

    def fold_attention_mask(self, mask: Tensor, heads: int) -> Tensor:
        """Folds an attention mask.

        Args:
            mask: Its last axes are the attention axes of the query and the
                value; those before are any number of the first of the batch,
                the other axes and the heads. Axes may have the size 1.
            heads: int, number of heads.

        Returns:
            `(1 or B', 1 or H, T, S)`.

        Raises:
            ValueError: If the mask has another shape.
        """
        sizes = self.list_weight_sizes(heads)
        least = 2 * len(self.over)
        ranks = tuple(range(least, len(sizes) + 1))
        shape = _format([find_static_size(size) for size in sizes])
        wanted = f"{shape}, or without some of the axes before the queries"
        check_rank("attention_mask", mask, ranks, wanted)
        first = len(mask.shape) - least
        missing = len(sizes) - len(mask.shape)
        # The missing axes are those just before the queries.
        for _ in range(missing):
            mask = ops.expand_dims(mask, first)
        found = ops.shape(mask)
        for size, own in zip(found, sizes, strict=True):
            size, own = find_static_size(size), find_static_size(own)
            if None not in (size, own) and size not in (1, own):
                raise ValueError(
                    f"attention_mask must have shape {wanted}; got "
                    f"{_format(mask.shape)}."
                )
        batch, pairs = len(sizes) - least - 1, sizes[-least:]
        rows = found[:batch]
        if not all(find_static_size(size) == 1 for size in rows):
            rows = sizes[:batch]
        mask = ops.broadcast_to(mask, (*rows, found[batch], *pairs))
        tokens, keys = map(math.prod, (self.query_sizes, self.value_sizes))
        return ops.reshape(mask, (math.prod(rows), found[batch], tokens, keys))


def plan_axes(
    attention_axes: int | Sequence[int] | None,
    query: Tensor,
    value: Tensor,
    key: Tensor | None,
    given: CallArguments,
) -> FoldedAxes | None:
    """Finds out which axes of inputs are folded into the batch.

    Args:
        attention_axes: The argument of `MultiHeadAttention`.
        query: Tensor with any number of axes.
        value: Tensor with any number of axes.
        key: Tensor with any number of axes, or `None`.
        given: `CallArguments`.

    Returns:
        `FoldedAxes`, or `None` if query and value have three axes.

    Raises:
        ValueError: If the inputs or axes do not fit each other.
    """
    rank = len(query.shape)
    if rank <= 3:
        find_axes(attention_axes, 3)
        return None
    inputs = {"value": value} | ({} if key is None else {"key": key})
    for name, tensor in inputs.items():
        check_rank(name, tensor, (rank,), f"of {rank} axes, as query has")
    check_equal_axes(value.shape, value.shape if key is None else key.shape)
    for name in ("cache", "length", "segment_ids", "key_segment_ids"):
        if getattr(given, name) is not None:
            raise ValueError(
                f"{name} needs inputs with three axes, (B, T, M); got a query "
                f"of shape {_format(query.shape)}."
            )
    over = find_axes(attention_axes, rank)
    others = tuple(axis for axis in range(1, rank - 1) if axis not in over)
    for axis in others:
        size, own = query.shape[axis], value.shape[axis]
        if None not in (size, own) and size != own:
            raise ValueError(
                f"query and value must have equal sizes of axis {axis}, which "
                f"is not among the attention axes {over}; got {size} and "
                f"{own}."
            )
    return FoldedAxes(
        over=over,
        others=others,
        query_shape=tuple(ops.shape(query)[:-1]),
        value_shape=tuple(ops.shape(value)[:-1]),
    )


def find_axes(axes: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Reads the argument `attention_axes` for inputs of a number of axes.

    Args:
        axes: Value of the argument.
        rank: int, number of axes of the inputs.

    Returns:
        Tuple of indices from 1 to `rank - 2`.

    Raises:
        ValueError: If an axis is the first or the last one, does not exist, or
            is given twice.
    """
    if axes is None:
        return tuple(range(1, rank - 1))
    given = (axes,) if isinstance(axes, int) else axes
    found = tuple(axis if axis >= 0 else rank + axis for axis in given)
    inner = all(0 < axis < rank - 1 for axis in found)
    if not inner or len(set(found)) < len(found):
        raise ValueError(
            f"attention_axes must be different axes from 1 to {rank - 2} of "
            f"inputs with {rank} axes, without the batch and the features; got "
            f"{axes}."
        )
    return found


def check_equal_axes(value_shape: Shape, key_shape: Shape) -> None:
    """Raises `ValueError` unless keys have the axes of the values."""
    sizes = tuple(value_shape)[1:-1], tuple(key_shape)[1:-1]
    if len(sizes[0]) != len(sizes[1]) or any(
        None not in pair and pair[0] != pair[1]
        for pair in zip(*sizes, strict=True)
    ):
        raise ValueError(
            "all axes of key and value but the first and the last must be "
            f"equal; got a value of shape {_format(value_shape)} and a key of "
            f"shape {_format(key_shape)}."
        )


def join_axes(shape: Shape) -> Shape:
    """Returns a shape with several axes of tokens as `(B, T, M)`."""
    return shape if len(shape) <= 3 else (shape[0], None, shape[-1])


def fold_inputs(
    axes: FoldedAxes,
    query: Tensor,
    value: Tensor,
    key: Tensor | None,
    given: CallArguments,
    heads: int,
) -> tuple[Tensor, Tensor, Tensor | None, CallArguments]:
    """Folds the inputs of a call; tensors that are one before are one after.

    Args:
        axes: `FoldedAxes`.
        query: Tensor with more than three axes.
        value: Tensor with more than three axes.
        key: Tensor with more than three axes, or `None`.
        given: `CallArguments`.
        heads: int, number of heads.

    Returns:
        Tuple of query, value, key and the call arguments.
    """
    folded: dict[int, Any] = {id(None): None}
    for tensor in (query, value, key):
        if id(tensor) not in folded:
            folded[id(tensor)] = axes.fold(tensor)
    changes: dict[str, Any] = {}
    rank = len(query.shape)
    for name in ("query_mask", "value_mask", "key_mask"):
        mask = getattr(given, name)
        if mask is not None:
            shape = f"of the {name.removesuffix('_mask')} without its last axis"
            check_rank(name, mask, (rank - 1,), shape)
            changes[name] = axes.fold(mask)
    if given.attention_mask is not None:
        changes["attention_mask"] = axes.fold_attention_mask(
            given.attention_mask, heads
        )
    for name in ("positions", "key_positions"):
        changes[name] = keras.tree.map_structure(
            axes.repeat, getattr(given, name)
        )
    return (
        *(folded[id(query)], folded[id(value)], folded[id(key)]),
        dataclasses.replace(given, **changes),
    )


def return_results(
    axes: FoldedAxes | None,
    output: Tensor,
    weights: Tensor | None,
    cache: Any,
) -> Any:
    """Returns what a call of attention returns, with all its axes.

    Args:
        axes: `FoldedAxes`, or `None`.
        output: `(B, T, ...)`, or folded.
        weights: Attention weights `(B, H, T, S)`, or folded; or `None`.
        cache: The new cache, or `None`.

    Returns:
        The output, or a tuple of it and of what is not `None`.
    """
    if axes is not None:
        output = axes.unfold(output)
        if weights is not None:
            weights = axes.unfold_weights(weights)
    results = [each for each in (output, weights, cache) if each is not None]
    return results[0] if len(results) == 1 else tuple(results)


def _format(shape: Any) -> str:
    return str(tuple(shape))
