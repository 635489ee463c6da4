"""Readers of the inputs of layers and models: positions, lengths and masks.

Each reader converts an argument to a checked tensor. An invalid value raises
`ValueError` at once or, if it is known only when a compiled program runs, is
guarded (see `guards.py`).
"""

import functools
import inspect
import numbers
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_lengen.checks.arguments import LARGEST_POSITION, described
from keras_lengen.checks.guards import find_numbers, guard, is_integer
from keras_lengen.types import (
    Array,
    Positions,
    Shape,
    Size,
    Tensor,
    TensorLike,
    Tensors,
)


def find_width(shape: Shape) -> int:
    """Returns the size of the last axis, or raises `ValueError` without one."""
    width = shape[-1]
    if width is None:
        raise ValueError(
            f"the last axis must have a known size; got shape {shape}: name "
            "the width of the features in keras.Input."
        )
    return width


def find_static_size(size: Size | None) -> int | None:
    """Returns the size of an axis, `None` if known only at run time."""
    return size if isinstance(size, int) else None


def compare_sizes(first: Size | None, second: Size | None) -> bool | Tensor:
    """Whether two sizes of axes are equal: a bool, or a boolean tensor."""
    if first is None or second is None:
        return True  # An unknown size of a symbolic tensor; checked later.
    if not (ops.is_tensor(first) or ops.is_tensor(second)):
        if isinstance(first, int) and isinstance(second, int):
            return first == second
        if first == second:
            return True
    return ops.equal(as_size(first), as_size(second))


def as_size(size: Size) -> Size:
    """Converts the size of an axis to an int or an int32 scalar tensor."""
    return (
        size
        if isinstance(size, int)
        else ops.cast(ops.convert_to_tensor(size), "int32")
    )


def find_size(tensor: Tensor, axis: int) -> Size | None:
    """Finds the size of an axis: an int, a scalar tensor or `None`.

    `None` stands for an unknown size of a symbolic tensor.
    """
    size = tensor.shape[axis]
    if isinstance(size, int) or isinstance(tensor, keras.KerasTensor):
        return size
    return ops.shape(tensor)[axis]


def as_signed(tensor: Tensor) -> Tensor:
    """Casts integers to a signed dtype, int32 or int64."""
    dtype = keras.backend.standardize_dtype(tensor.dtype)
    wide = dtype in ("int64", "uint32", "uint64")
    return ops.cast(tensor, "int64" if wide else "int32")


@functools.cache
def _list_arguments(call: Callable[..., Any]) -> tuple[str, ...]:
    """Lists the arguments of a method, without the layer."""
    return tuple(inspect.signature(call).parameters)[1:]


class NamedInputs(keras.layers.Layer):
    """Mixin whose errors name the argument that Keras cannot convert.

    List it before the class of the layer among the base classes.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        names = _list_arguments(type(self).call)
        for name, value in zip(names, args, strict=False):
            check_tensors(**{name: value})
        for name, value in kwargs.items():
            if value is None or isinstance(value, bool | int | float):
                continue
            leaves = keras.tree.flatten(value)
            if any(hasattr(leaf, "shape") for leaf in leaves):
                for leaf in leaves:
                    check_tensors(**{name: leaf})
        return super().__call__(*args, **kwargs)


def check_tensors(**tensors: Any) -> None:
    """Raises `ValueError` unless arguments are tensors, arrays or `None`."""
    for name, value in tensors.items():
        if value is not None and not is_convertible(value):
            wanted = "a tensor of numbers"
            if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
                wanted += " that fit 32 bits"
            raise ValueError(f"{name} must be {wanted}; got {show(value)}.")


def is_convertible(value: Any) -> bool:
    """Whether a value is a tensor, or an array that Keras can convert."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind not in "OSUc" and _fits_int32(value)
    return hasattr(value, "shape") and is_dense(value) and _is_numeric(value)


def is_dense(value: Any) -> bool:
    """Whether a value is neither a ragged nor a sparse tensor."""
    if isinstance(value, keras.KerasTensor):
        return not (getattr(value, "ragged", False) or value.sparse)
    return type(value).__name__ not in _IRREGULAR


_IRREGULAR = {
    "RaggedTensor": "pad it, as by its method to_tensor",
    "SparseTensor": "make it dense, as by tf.sparse.to_dense",
    "BCOO": "make it dense, as by its method todense",
}
"""Advice on tensors whose entries are no regular array, by their class."""


def _is_numeric(tensor: Tensor) -> bool:
    """Whether a tensor holds real numbers or booleans."""
    dtype = str(getattr(tensor.dtype, "name", tensor.dtype))
    return not dtype.startswith(
        ("complex", "str", "object", "resource", "variant")
    )


def _fits_int32(array: Array) -> bool:
    """Whether all integers fit 32 bits; JAX drops the higher bits."""
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 4:
        return True
    return not array.size or bool(
        array.min() >= -(2**31) and array.max() < 2**31
    )


def check_rank(
    name: str, tensor: Any, ranks: tuple[int, ...], shape: str
) -> None:
    """Raises `ValueError` if a tensor has a wrong number of axes.

    Args:
        name: str, name of the argument, for the error message.
        tensor: The tensor.
        ranks: tuple of ints, allowed numbers of axes.
        shape: str, expected shape, for the error message.
    """
    regular = hasattr(tensor, "shape") and is_dense(tensor)
    if not (regular and _is_numeric(tensor)):
        raise ValueError(
            f"{name} must be a tensor of shape {shape}; got {show(tensor)}."
        )
    if len(tensor.shape) not in ranks:
        raise ValueError(
            f"{name} must have shape {shape}; got {tuple(tensor.shape)}."
        )


def guard_same_size(guarded: Tensors, axis: int, **tensors: Tensor) -> Tensors:
    """Guards tensors by the condition that two tensors are equally long.

    Args:
        guarded: The tensors to return, as for `guard`.
        axis: int, index of the axis: 0, 1, 2 or -1.
        **tensors: Two tensors, by the names of their arguments.

    Returns:
        The guarded tensors.
    """
    (name, tensor), (other_name, other) = tensors.items()
    if tensor is other:
        return guarded
    size, other_size = find_size(tensor, axis), find_size(other, axis)
    what = {
        0: "batch size",
        1: "number of tokens",
        2: "number of heads",
        -1: "number of features",
    }[axis]
    return guard(
        guarded,
        compare_sizes(size, other_size),
        f"{name} and {other_name} must have the same {what}; got ",
        format_size(size),
        " and ",
        format_size(other_size),
        ".",
    )


def read_positions(
    positions: TensorLike, inputs: Tensor, *, name: str = "positions"
) -> Positions:
    """Reads positions of tokens.

    Args:
        positions: Tensor, array or list of numbers `(T,)`, `(1, T)` or
            `(B, T)`, or a pair of these.
        inputs: Tensor `(B, T, ...)`; only its shape is read.
        name: str, name of the argument, for the error message.

    Returns:
        Integer or float tensor `(T,)` or `(B, T)`, or a pair of these.
        Positions that are found to be wrong only at run time become invalid.

    Raises:
        ValueError: If they are known not to be one finite number from
            `-2 ** 24` to `2 ** 24` for each token.
    """
    if is_pair(positions):
        return tuple(
            read_positions(axis, inputs, name=name) for axis in positions
        )
    positions = _as_tensor(name, positions, "numbers of shape (T,) or (B, T)")
    check_rank(name, positions, (1, 2), "(T,) or (B, T)")
    if is_integer(positions) and not isinstance(positions, keras.KerasTensor):
        positions = as_signed(positions)
    tokens, count = find_size(inputs, 1), find_size(positions, -1)
    positions = guard(
        positions,
        compare_sizes(count, tokens),
        f"{name} must be one number for each token: got ",
        format_size(count),
        " for ",
        format_size(tokens),
        " tokens.",
    )
    if len(positions.shape) == 2:
        if find_static_size(positions.shape[0]) == 1:
            positions = positions[0]
        else:
            examples, batch_size = find_size(positions, 0), find_size(inputs, 0)
            positions = guard(
                positions,
                compare_sizes(examples, batch_size),
                f"{name} of shape (B, T) must have one row for each "
                "example: got ",
                format_size(examples),
                " rows for a batch of ",
                format_size(batch_size),
                ".",
            )
    if isinstance(positions, keras.KerasTensor):
        return positions
    return guard(
        positions,
        # The comparison is false for NaN.
        ops.all(ops.abs(positions) <= LARGEST_POSITION, axis=-1),
        f"{name} must be finite numbers from -{LARGEST_POSITION} to "
        f"{LARGEST_POSITION}, beyond which float32 merges neighbours; got "
        "numbers from ",
        *describe_range(positions),
        ".",
    )


def describe_range(
    numbers: Tensor,
) -> tuple[Callable[[], Tensor], str, Callable[[], Tensor]]:
    """Describes the smallest and the largest of some numbers, for `guard`."""
    return lambda: ops.min(numbers), " to ", lambda: ops.max(numbers)


def is_pair(positions: Any) -> bool:
    """Whether positions are a pair, those of rows and those of columns."""
    return (
        isinstance(positions, tuple | list)
        and len(positions) == 2
        and all(
            hasattr(axis, "shape") or isinstance(axis, tuple | list)
            for axis in positions
        )
    )


def read_lengths(
    lengths: TensorLike | None, inputs: Tensor, *, name: str = "lengths"
) -> Tensor | None:
    """Reads true lengths, integers from 0 to the number of tokens.

    Args:
        lengths: Integers of shape `()` or `(B,)`, or `None`.
        inputs: Tensor `(B, T, ...)`; only its shape is read.
        name: str, name of the argument, for the error message.

    Returns:
        int32 tensor `()` or `(B,)`, or `None`. Lengths that are found to be
        wrong only at run time become invalid, which `mark_like` passes on.
    """
    if lengths is None:
        return None
    lengths = _as_tensor(name, lengths, "integers of shape () or (B,)")
    if not is_integer(lengths):
        raise ValueError(
            f"{name} must be integers, the true lengths of the sequences; got "
            f"{keras.backend.standardize_dtype(lengths.dtype)}."
        )
    lengths = _guard_one_each(name, lengths, inputs)
    tokens = find_size(inputs, 1)
    if isinstance(lengths, keras.KerasTensor) or tokens is None:
        return lengths
    lengths = as_signed(lengths)
    most = ops.cast(as_size(tokens), lengths.dtype)
    lengths = guard_each(
        lengths,
        ops.logical_and(lengths >= 0, lengths <= most),
        f"{name} must be integers from 0 to the ",
        format_size(tokens),
        " tokens of the padded sequences; got ",
        lengths,
        ".",
    )
    return ops.cast(lengths, "int32")


def read_reference_length(
    length: TensorLike | None,
    inputs: Tensor,
    *,
    name: str = "reference_length",
) -> Tensor | None:
    """Reads a length to scale by.

    Args:
        length: Numbers above 0 of shape `()` or `(B,)`, or `None`.
        inputs: Tensor `(B, T, ...)`; only its shape is read.
        name: str, name of the argument, for the error message.

    Returns:
        float32 tensor `()` or `(B,)`, or `None`. Lengths that are found to be
        wrong only at run time become NaN.
    """
    if length is None:
        return None
    length = _as_tensor(name, length, "numbers of shape () or (B,)")
    length = _guard_one_each(name, length, inputs)
    if isinstance(length, keras.KerasTensor):
        return length
    length = ops.cast(length, "float32")
    positive = ops.logical_and(length > 0, ops.isfinite(length))
    return guard_each(
        length, positive, f"{name} must be above 0; got ", length, "."
    )


def guard_each(numbers: Tensor, condition: Tensor, *message: Any) -> Tensor:
    """Guards every number `()` or `(B,)` by its own condition."""
    if len(numbers.shape) == 0:
        return guard(numbers, condition, *message)
    columns = guard(ops.expand_dims(numbers, -1), condition, *message)
    return ops.squeeze(columns, -1)


def _guard_one_each(name: str, lengths: Tensor, inputs: Tensor) -> Tensor:
    """Guards lengths: there must be one for each example, or one for all."""
    check_rank(name, lengths, (0, 1), "() or (B,)")
    if len(lengths.shape) == 0:
        return lengths
    count, batch_size = find_size(lengths, 0), find_size(inputs, 0)
    return guard(
        lengths,
        compare_sizes(count, batch_size),
        f"{name} must be one number, or one for each example: got ",
        format_size(count),
        " for a batch of ",
        format_size(batch_size),
        ".",
    )


def read_mask(
    mask: TensorLike | None,
    guarded: Tensors,
    *,
    inputs: Tensor | None = None,
    name: str = "padding_mask",
) -> tuple[Tensor | None, Tensors]:
    """Reads a padding mask.

    A mask has no invalid value. If it is found to be wrong only at run time,
    the reader therefore marks the tensors whose results depend on it.

    Args:
        mask: Boolean tensor `(B, T)`, true for real tokens, or `None`; also
            integers 1 and 0.
        guarded: A tensor `(B, ...)` or a structure of tensors, to be marked.
        inputs: Tensor `(B, T, ...)`, of which only the shape is read; `None`
            for `guarded`.
        name: str, name of the argument, for the error message.

    Returns:
        A pair of the mask, a boolean tensor or `None`, and `guarded`.
    """
    if mask is None:
        return None, guarded
    inputs = guarded if inputs is None else inputs
    mask, guarded = read_truth_values(name, mask, (2,), "(B, T)", guarded)
    return _guard_tokens(name, mask, inputs, guarded)


def read_segment_ids(
    segment_ids: TensorLike | None,
    guarded: Tensors,
    *,
    inputs: Tensor | None = None,
    name: str = "segment_ids",
) -> tuple[Tensor | None, Tensors]:
    """Reads the numbers of the documents that tokens belong to.

    As for `read_mask`, tensors are marked that depend on wrong numbers.

    Args:
        segment_ids: Integers `(B, T)`, or `None`.
        guarded: A tensor `(B, ...)` or a structure of tensors, to be marked.
        inputs: Tensor `(B, T, ...)`, of which only the shape is read; `None`
            for `guarded`.
        name: str, name of the argument, for the error message.

    Returns:
        A pair of the numbers, an integer tensor or `None`, and `guarded`.
    """
    if segment_ids is None:
        return None, guarded
    wanted = "integers of shape (B, T), the document of each token"
    inputs = guarded if inputs is None else inputs
    segment_ids = _as_tensor(name, segment_ids, wanted)
    check_rank(name, segment_ids, (2,), "(B, T)")
    if not is_integer(segment_ids):
        raise ValueError(
            f"{name} must be {wanted}; got "
            f"{keras.backend.standardize_dtype(segment_ids.dtype)}."
        )
    return _guard_tokens(name, segment_ids, inputs, guarded)


def _guard_tokens(
    name: str, value: Tensor, inputs: Tensor, guarded: Tensors
) -> tuple[Tensor, Tensors]:
    """Guards tensors by the condition that a value has an entry per token."""
    for axis, what in ((0, "examples"), (1, "tokens")):
        size, wanted = find_size(value, axis), find_size(inputs, axis)
        value, guarded = guard(
            (value, guarded),
            compare_sizes(size, wanted),
            f"{name} must have the shape (B, T) of the tokens: got ",
            format_size(size),
            " for ",
            format_size(wanted),
            f" {what}.",
        )
    return value, guarded


def read_truth_values(
    name: str,
    value: TensorLike,
    ranks: tuple[int, ...],
    shape: str,
    guarded: Tensors,
) -> tuple[Tensor, Tensors]:
    """Reads truth values: booleans, or the integers 1 and 0.

    Args:
        name: str, name of the argument, for the error message.
        value: Value of the argument.
        ranks: tuple of ints, allowed numbers of axes.
        shape: str, expected shape, for the error message.
        guarded: A tensor or a structure of tensors, to be marked.

    Returns:
        A pair of a boolean tensor and `guarded`.

    Raises:
        ValueError: If the value is known to be no such tensor.
    """
    wanted = f"truth values of shape {shape}"
    value = _as_tensor(name, value, wanted, truth=True)
    check_rank(name, value, ranks, shape)
    dtype = keras.backend.standardize_dtype(value.dtype)
    if keras.backend.is_float_dtype(dtype):
        raise ValueError(
            f"{name} must be {wanted}, true for visible tokens; got {dtype}: "
            "pass a comparison, mask == 0 for numbers to add to scores, or "
            "mask > 0 for zeros and ones."
        )
    if dtype == "bool" or isinstance(value, keras.KerasTensor):
        return value, guarded
    value = as_signed(value)
    value, guarded = guard(
        (value, guarded),
        ops.all(ops.logical_or(value == 0, value == 1)),
        f"{name} must be {wanted}, True or 1 for visible tokens and False or 0 "
        "for hidden ones; got integers from ",
        *describe_range(value),
        ".",
    )
    return ops.cast(value, "bool"), guarded


def read_token_ids(
    name: str, token_ids: TensorLike, vocabulary_size: int
) -> Tensor:
    """Reads token ids.

    Args:
        name: str, name of the argument, for the error message.
        token_ids: Integers `(B, T)`.
        vocabulary_size: int, number of token ids.

    Returns:
        int32 tensor `(B, T)`. Examples with an id that is found to be wrong
        only at run time become invalid, which `mark_like` passes on.

    Raises:
        ValueError: If ids are known to be outside of the vocabulary, or the
            value is no such tensor.
    """
    token_ids = as_tensor(name, token_ids, "integers of shape (B, T)")
    check_rank(name, token_ids, (2,), "(B, T)")
    if not is_integer(token_ids):
        dtype = keras.backend.standardize_dtype(token_ids.dtype)
        raise ValueError(
            f"{name} must be integers; got {dtype}: cast them, and give "
            'keras.Input dtype="int32".'
        )
    if isinstance(token_ids, keras.KerasTensor):
        return token_ids
    token_ids = as_signed(token_ids)
    inside = ops.logical_and(token_ids >= 0, token_ids < vocabulary_size)
    given = token_ids
    token_ids = guard(
        token_ids,
        ops.all(inside, axis=-1),
        f"{name} must be from 0 to {vocabulary_size - 1}, below "
        "vocabulary_size; got ids from ",
        *describe_range(given),
        ".",
    )
    return ops.cast(token_ids, "int32")


def read_index(name: str, index: Any) -> Size:
    """Reads an index.

    Args:
        name: str, name of the argument, for the error message.
        index: Integer or scalar integer tensor, from 0 to `2 ** 24`.

    Returns:
        An int if the index is known, else a scalar integer tensor.
    """
    wanted = (
        f"an integer from 0 to {LARGEST_POSITION}, or a scalar tensor of one"
    )
    known = None
    right = isinstance(index, keras.KerasTensor) or ops.is_tensor(index)
    if isinstance(index, numbers.Integral | np.ndarray):
        right, known = not isinstance(index, bool), np.asarray(index)
    elif right:
        known = find_numbers(index)
    if right and known is not None:
        right = (
            known.shape == ()
            and np.issubdtype(known.dtype, np.integer)
            and 0 <= known <= LARGEST_POSITION
        )
        index = int(known) if right else index
    elif right:
        right = len(index.shape) == 0 and is_integer(index)
    if not right:
        raise ValueError(f"{name} must be {wanted}; got {show(index)}.")
    return index


def format_size(size: Size | None) -> str | Tensor:
    """Formats a size as a part of the message of `guard`."""
    return (
        str(size)
        if find_static_size(size) is not None or size is None
        else size
    )


def as_tensor(name: str, value: Any, wanted: str) -> Tensor:
    """Converts a tensor, array or list of numbers or booleans to a tensor.

    Args:
        name: str, name of the argument, for the error message.
        value: Value of the argument.
        wanted: str, expected value, for the error message.

    Raises:
        ValueError: If the value is not made of numbers.
    """
    return _as_tensor(name, value, wanted, truth=True)


def _as_tensor(
    name: str, value: Any, wanted: str, *, truth: bool = False
) -> Tensor:
    kinds = "iub" if truth else "iu"
    if _is_mean_of_replicas(value):
        value = ops.cast(value, "int32")
    if not is_dense(value):
        right = False
    elif isinstance(value, keras.KerasTensor) or ops.is_tensor(value):
        dtype = keras.backend.standardize_dtype(value.dtype)
        right = (
            keras.backend.is_int_dtype(dtype)
            or keras.backend.is_float_dtype(dtype)
            or (truth and dtype == "bool")
        )
    else:
        try:
            array = np.asarray(value)
            # An array of objects comes from a list of tensors, or of lists of
            # unequal lengths.
            right = array.dtype.kind in kinds + "f" and _fits_int32(array)
            if array.dtype.kind == "O" and isinstance(value, list | tuple):
                value, right = ops.stack(value), True
        except Exception:
            right = False
        if right:
            value = ops.convert_to_tensor(value)
    if not right:
        raise ValueError(f"{name} must be {wanted}; got {show(value)}.")
    return value


def _is_mean_of_replicas(value: Any) -> bool:
    """Whether a value stands for integers of which Keras took the mean.

    Keras, with TensorFlow, builds a model under a strategy from the mean of the
    replicas' batches. Only its shape counts: the model is called in a graph
    that is thrown away. Training and evaluation call it in the replicas.
    """
    if keras.backend.backend() != "tensorflow":
        return False
    import tensorflow as tf

    return (
        tf.is_symbolic_tensor(value)
        and value.dtype.is_floating
        and value.graph.name.startswith("scratch_graph")
        and tf.distribute.has_strategy()
        and tf.distribute.in_cross_replica_context()
    )


def show(value: Any) -> str:
    """Describes the value of an argument, and what to do if it is irregular."""
    if not is_dense(value):
        kind = type(value).__name__
        if isinstance(value, keras.KerasTensor):
            kind = "SparseTensor" if value.sparse else "RaggedTensor"
        return f"a {kind}: {_IRREGULAR[kind]}"
    if isinstance(value, list | tuple):
        return f"{described(value)}: pass an array, its rows of equal length"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        dtype = getattr(value.dtype, "name", value.dtype)
        return f"{dtype} of shape {tuple(value.shape)}"
    return described(value)
