"""Conditions on tensors, checked now or when the compiled program runs."""

import functools
import numbers
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_lengen.types import Array, Positions, Tensor, Tensors

INVALID_POSITION = -(2**31)
"""Marks an invalid integer; a position cast to float becomes NaN by it."""


def guard(tensors: Tensors, condition: bool | Tensor, *message: Any) -> Tensors:
    """Returns tensors that are meant to be used only if a condition holds.

    A condition that is known is checked at once. Otherwise, a program of
    TensorFlow gets an assertion, which runs before the tensors are used. XLA
    and JAX have no assertions: there, the entries of all examples that fail
    become NaN, or `INVALID_POSITION` if they are integers. Booleans do not
    change.

    Args:
        tensors: A tensor `()`, `(T,)` or `(B, ...)`, or a structure of tensors
            and `None`.
        condition: bool, or boolean tensor of the tensors' first axes: `()`,
            `(B,)` or `(B, T)`. All entries of a tensor without examples, `()`
            or `(T,)`, depend on all conditions.
        *message: Strings, numbers and tensors, joined to the error message; a
            function that returns one of them is called only if it is needed.

    Returns:
        The tensors, or tensors of the same shapes and dtypes.

    Raises:
        ValueError: If the condition is known not to hold.
    """
    if condition is True or isinstance(condition, keras.KerasTensor):
        return tensors
    known = find_numbers(condition)
    if known is not None:
        if known.all() or _has_stand_ins():
            return tensors
        raise ValueError("".join(_format(part) for part in message))
    if not keras.tree.flatten(tensors):
        return tensors
    if keras.backend.backend() == "tensorflow":
        condition, tensors = _assert(condition, message, tensors)
    return _map(functools.partial(_mark, condition=condition), tensors)


def _has_stand_ins() -> bool:
    """Whether Keras finds shapes with PyTorch, by some number of tokens."""
    if keras.backend.backend() != "torch":
        return False
    return bool(ops.zeros(()).device.type == "meta")


def mark_like(tensors: Tensors, source: Tensor | None) -> Tensors:
    """Marks the examples whose integers or numbers in `source` are invalid.

    Args:
        tensors: A tensor `()`, `(T,)` or `(B, ...)`, or a structure of tensors.
        source: Numbers `()`, `(B,)` or `(B, T)` that `guard` has returned.

    Returns:
        The tensors, or tensors of the same shapes and dtypes.
    """
    if source is None or find_numbers(source) is not None:
        return tensors  # If they were invalid, `guard` has raised.
    if is_integer(source):
        valid = source != INVALID_POSITION
    else:
        valid = ops.logical_not(ops.isnan(source))
    if len(source.shape) == 2:
        valid = ops.all(valid, axis=-1)
    return _map(functools.partial(_mark, condition=valid), tensors)


def mark_by_positions(tensors: Tensors, positions: Positions) -> Tensors:
    """Marks the examples whose positions are invalid.

    It is not enough that encodings turn invalid positions to NaN: XLA may
    compile arithmetic whose operand is NaN as if it were a number.

    Args:
        tensors: A tensor `(B, ...)`, or a structure of tensors and `None`.
        positions: Tensor `(T,)` or `(B, T)`, or a pair of these.

    Returns:
        The tensors, or tensors of the same shapes and dtypes.
    """
    for axis in keras.tree.flatten(positions):
        if find_numbers(axis) is not None:
            continue
        if is_integer(axis):
            valid = axis != INVALID_POSITION
        else:
            valid = ops.isfinite(axis)
        valid = ops.all(valid, axis=-1)
        tensors = _map(functools.partial(_mark, condition=valid), tensors)
    return tensors


def find_numbers(value: Any) -> Array | None:
    """Reads the numbers of a tensor.

    Returns:
        A NumPy array, or `None` if the numbers are known only at run time.
    """
    if isinstance(value, bool | numbers.Number | np.ndarray | np.generic):
        return np.asarray(value)
    if isinstance(value, keras.KerasTensor):
        return None
    try:
        return np.asarray(ops.convert_to_numpy(value))
    except Exception:
        # Each backend raises its own error for a tensor inside a program.
        return None


def is_integer(tensor: Tensor) -> bool:
    """Whether the dtype of a tensor is an integer dtype, other than bool."""
    return keras.backend.is_int_dtype(
        keras.backend.standardize_dtype(tensor.dtype)
    )


def _map(function: Callable[[Tensor], Tensor], tensors: Tensors) -> Tensors:
    """Maps the tensors of a structure, and keeps `None`."""
    return keras.tree.map_structure(
        lambda tensor: None if tensor is None else function(tensor), tensors
    )


def _mark(tensor: Tensor, condition: Tensor) -> Tensor:
    """Makes the entries of examples that violate their condition invalid."""
    if keras.backend.standardize_dtype(tensor.dtype) == "bool":
        return tensor
    if len(tensor.shape) <= 1:
        # Examples share the tensor.
        condition = ops.all(condition)
    elif len(condition.shape) > 0:
        for _ in range(len(tensor.shape) - len(condition.shape)):
            condition = ops.expand_dims(condition, -1)
    invalid = INVALID_POSITION if is_integer(tensor) else float("nan")
    return ops.where(condition, tensor, invalid)


def _assert(
    condition: Tensor, message: tuple[Any, ...], tensors: Tensors
) -> tuple[Tensor, Tensors]:
    """Adds an assertion to a program of TensorFlow; XLA leaves it out.

    Returns:
        The condition and the tensors, which depend on the assertion.
    """
    import tensorflow as tf

    parts: list[Any] = []
    for part in message:
        part = part() if callable(part) else part
        part = part if ops.is_tensor(part) else str(part)
        if parts and isinstance(part, str) and isinstance(parts[-1], str):
            parts[-1] += part
        else:
            parts.append(part)
    assertion = tf.raw_ops.Assert(
        condition=tf.reduce_all(condition),
        data=[tf.convert_to_tensor(part) for part in parts],
        summarize=3,
    )
    # It must run before any operation that would fail with another message.
    with tf.control_dependencies([assertion]):
        return _map(tf.identity, (condition, tensors))


def _format(part: Any) -> str:
    part = part() if callable(part) else part
    if isinstance(part, str):
        return part
    known = find_numbers(part)
    return str(part if known is None else known)
