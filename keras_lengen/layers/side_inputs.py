"""Checks of what comes beside the tokens: positions, lengths and masks.

What is known when a layer is called is checked there and raises `ValueError`.
What only a run of the program knows is asserted in it; where assertions do not
run, under XLA and in JAX's programs, `where_holds` makes the results NaN.
"""

import inspect
import numbers

import keras
import numpy as np
from keras import ops

from keras_lengen.arguments import LARGEST_POSITION, described

INVALID_POSITION = -(2**31)
"""Stands in integer positions for NaN, which they become as floats."""


def demand(holds, *message):
    """Raises `ValueError` if something does not hold, now or in a run.

    Args:
        holds: A truth value, or a boolean tensor, of which all must be true.
        *message: Strings and numbers, put together when it does not hold.

    Returns:
        `True`, or, where only a run can tell, the tensor, for `where_holds`.
    """
    if isinstance(holds, keras.KerasTensor):
        return True
    known = find_numbers(holds)
    if known is None:
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            # XLA leaves assertions out.
            assertion = tf.debugging.Assert(tf.reduce_all(holds), list(message))
            # First the assertion, then whatever would fail in its place.
            with tf.control_dependencies([assertion]):
                return tf.identity(holds)
        return holds
    if not known.all():
        raise ValueError("".join(map(_format, message)))
    return True


def both(first, second):
    """Whether two conditions hold, each `True` or a boolean tensor."""
    if first is True:
        return second
    return first if second is True else ops.logical_and(first, second)


def where_holds(holds, tensor):
    """A tensor that is NaN where a condition of its examples does not hold.

    Args:
        holds: `True`, or a boolean tensor, a scalar or `(B,)`.
        tensor: Of any shape, `(B, ...)` if each example has a condition of
            its own and the tensor more than one axis. Integers are
            positions, and get `INVALID_POSITION`.
    """
    if holds is True:
        return tensor
    rank = len(tensor.shape)
    if len(holds.shape) == 1:
        holds = (
            ops.all(holds)
            if rank < 2
            else ops.reshape(holds, (-1,) + (1,) * (rank - 1))
        )
    if is_integer(tensor):
        return ops.where(holds, as_signed(tensor), INVALID_POSITION)
    return ops.where(holds, tensor, float("nan"))


def find_numbers(value):
    """The numbers of a tensor as an array, `None` where only a run has them."""
    if isinstance(value, bool | numbers.Number | np.ndarray | np.generic):
        return np.asarray(value)
    if isinstance(value, keras.KerasTensor):
        return None
    try:
        return np.asarray(ops.convert_to_numpy(value))
    except Exception:
        # Every backend has an error of its own for a tensor in a program.
        return None


def find_static_size(size):
    """A size of a tensor's axis as an integer, `None` if a run decides it."""
    return size if isinstance(size, int) else None


def compare_sizes(first, second):
    """Whether two sizes of axes are equal: a truth value or a tensor."""
    if first is None or second is None:
        return True  # Symbols, which a run replaces.
    if not (ops.is_tensor(first) or ops.is_tensor(second)):
        if isinstance(first, int) and isinstance(second, int):
            return first == second
        if first == second:
            return True
    return ops.equal(as_size(first), as_size(second))


def as_size(size):
    """A size of an axis as something to compute with."""
    return (
        size
        if isinstance(size, int)
        else ops.cast(ops.convert_to_tensor(size), "int32")
    )


def find_size(tensor, axis):
    """A size of a tensor: an integer, a scalar, or `None` of a symbol."""
    if isinstance(tensor, keras.KerasTensor):
        return tensor.shape[axis]
    return ops.shape(tensor)[axis]


def is_integer(tensor):
    """Whether a tensor holds integers, truth values not counted."""
    return keras.backend.is_int_dtype(
        keras.backend.standardize_dtype(tensor.dtype)
    )


def as_signed(tensor):
    """The same integers in a dtype of signed ones."""
    dtype = keras.backend.standardize_dtype(tensor.dtype)
    wide = dtype in ("int64", "uint32", "uint64")
    return ops.cast(tensor, "int64" if wide else "int32")


class NamedInputs(keras.layers.Layer):
    """Makes a layer name the arguments that Keras cannot convert.

    Mixed in before the layer's class.
    """

    def __call__(self, *args, **kwargs):
        names = inspect.signature(self.call).parameters
        check_tensors(**dict(zip(names, args, strict=False)))
        for name, value in kwargs.items():
            leaves = keras.tree.flatten(value)
            if any(hasattr(leaf, "shape") for leaf in leaves):
                for leaf in leaves:
                    check_tensors(**{name: leaf})
        return super().__call__(*args, **kwargs)


def check_tensors(**tensors):
    """Raises `ValueError` if arguments are no tensors, arrays or `None`."""
    for name, value in tensors.items():
        if value is not None and not is_convertible(value):
            wanted = "a tensor of numbers"
            if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
                wanted += " of 32 bits"
            raise ValueError(f"{name} must be {wanted}; got {_show(value)}.")


def is_convertible(value):
    """Whether Keras can make a tensor of numbers of something, or has one."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind not in "OSUc" and _fits_int32(value)
    return hasattr(value, "shape")


def _fits_int32(array):
    """Whether integers are kept by JAX, which takes the lower 32 bits."""
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 4:
        return True
    return not array.size or bool(
        array.min() >= -(2**31) and array.max() < 2**31
    )


def check_rank(name, tensor, ranks, shape):
    """Raises `ValueError` if a tensor has another number of axes.

    Args:
        name: Name of the argument.
        tensor: The tensor.
        ranks: Numbers of axes that are right.
        shape: The right shape, for the message.
    """
    if not hasattr(tensor, "shape"):
        raise ValueError(
            f"{name} must be a tensor of shape {shape}; got {_show(tensor)}."
        )
    if len(tensor.shape) not in ranks:
        raise ValueError(
            f"{name} must have shape {shape}; got {tuple(tensor.shape)}."
        )


def check_same_size(axis, **tensors):
    """Demands that two tensors have one size along an axis.

    Args:
        axis: Index of the axis.
        **tensors: The two, by the names of their arguments.

    Returns:
        `True`, or a boolean tensor where only a run can tell.
    """
    (name, tensor), (other_name, other) = tensors.items()
    size, other_size = find_size(tensor, axis), find_size(other, axis)
    what = {0: "examples", 1: "tokens", 2: "heads", -1: "features"}[axis]
    return demand(
        compare_sizes(size, other_size),
        f"{name} and {other_name} must have equally many {what}; got ",
        format_size(size),
        " and ",
        format_size(other_size),
        ".",
    )


def check_positions(positions, inputs, *, name="positions"):
    """Returns positions `(T,)` or `(B, T)`, or raises `ValueError`.

    Args:
        positions: Those of the tokens of `inputs`: a tensor, an array or a
            list of numbers, or a pair of them; `(1, T)` is for all examples.
        inputs: `(B, T, ...)`; only its shape is read.
        name: Name of the argument.
    """
    if is_pair(positions):
        return tuple(
            check_positions(axis, inputs, name=name) for axis in positions
        )
    positions = _as_tensor(name, positions, "numbers of shape (T,) or (B, T)")
    check_rank(name, positions, (1, 2), "(T,) or (B, T)")
    tokens = find_size(inputs, 1)
    count = find_size(positions, -1)
    holds = demand(
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
            holds = both(
                holds,
                demand(
                    compare_sizes(examples, batch_size),
                    f"{name} of shape (B, T) must be those of each example: "
                    "got ",
                    format_size(examples),
                    " rows for a batch of ",
                    format_size(batch_size),
                    ".",
                ),
            )
    if isinstance(positions, keras.KerasTensor):
        return positions
    if is_integer(positions):
        positions = as_signed(positions)
    positions = where_holds(holds, positions)
    return where_holds(_check_reach(name, positions), positions)


def _check_reach(name, positions):
    """Whether the positions of each example are numbers to tell apart."""
    # NaN is not.
    inside = ops.abs(positions) <= LARGEST_POSITION
    return demand(
        ops.all(inside, axis=-1),
        f"{name} must be finite numbers from -{LARGEST_POSITION} to "
        f"{LARGEST_POSITION}, beyond which float32 merges neighbours; got "
        "numbers from ",
        ops.min(positions, initial=0),
        " to ",
        ops.max(positions, initial=0),
        ".",
    )


def is_pair(positions):
    """Whether positions are those of rows and those of columns."""
    return (
        isinstance(positions, tuple | list)
        and len(positions) == 2
        and all(
            hasattr(axis, "shape") or isinstance(axis, tuple | list)
            for axis in positions
        )
    )


def check_lengths(lengths, inputs, *, name="lengths"):
    """Checks true lengths, integers from 0 to the number of tokens.

    Args:
        lengths: A scalar or `(B,)`, or `None`.
        inputs: `(B, T, ...)`; only its shape is read.
        name: Name of the argument.

    Returns:
        The lengths as an int32 tensor or `None`, and for `where_holds` whether
        they are right, a truth value or a tensor of the lengths' shape.
    """
    if lengths is None:
        return None, True
    lengths = _as_tensor(name, lengths, "integers of shape () or (B,)")
    if not is_integer(lengths):
        raise ValueError(
            f"{name} must be integers, the true lengths of the sequences; got "
            f"{keras.backend.standardize_dtype(lengths.dtype)}."
        )
    holds = _check_one_each(name, lengths, inputs)
    tokens = find_size(inputs, 1)
    if isinstance(lengths, keras.KerasTensor) or tokens is None:
        return lengths, True
    lengths = as_signed(lengths)
    most = ops.cast(as_size(tokens), lengths.dtype)
    inside = demand(
        ops.logical_and(lengths >= 0, lengths <= most),
        f"{name} must be integers from 0 to the ",
        format_size(tokens),
        " tokens of the padded sequences; got ",
        lengths,
        ".",
    )
    lengths = ops.cast(lengths, "int32")
    if inside is not True:
        # Wrong ones stay so, for whoever checks them again.
        lengths = ops.where(inside, lengths, -1)
    return lengths, both(holds, inside)


def check_reference_length(length, inputs, *, name="reference_length"):
    """Returns a length to scale by, or raises `ValueError`.

    Args:
        length: A number above 0 as a scalar or `(B,)`, or `None`.
        inputs: `(B, T, ...)`; only its shape is read.
        name: Name of the argument.

    Returns:
        float32, NaN where only a run could tell that it is wrong; or `None`.
    """
    if length is None:
        return None
    length = _as_tensor(name, length, "numbers of shape () or (B,)")
    holds = _check_one_each(name, length, inputs)
    if isinstance(length, keras.KerasTensor):
        return length
    length = ops.cast(length, "float32")
    positive = ops.logical_and(length > 0, ops.isfinite(length))
    positive = demand(positive, f"{name} must be above 0; got ", length, ".")
    return where_holds(both(holds, positive), length)


def _check_one_each(name, lengths, inputs):
    """Whether lengths are one, or one for each example."""
    check_rank(name, lengths, (0, 1), "() or (B,)")
    if len(lengths.shape) == 0:
        return True
    count, batch_size = find_size(lengths, 0), find_size(inputs, 0)
    return demand(
        compare_sizes(count, batch_size),
        f"{name} must be one number, or one for each example: got ",
        format_size(count),
        " for a batch of ",
        format_size(batch_size),
        ".",
    )


def check_padding_mask(mask, inputs, *, name="padding_mask"):
    """Checks a mask `(B, T)`, true for real tokens.

    Returns:
        The mask as booleans or `None`, and for `where_holds` whether its shape
        is right.
    """
    if mask is None:
        return None, True
    mask = check_truth_values(name, mask, (2,), "(B, T)")
    holds = True
    for axis, what in ((0, "examples"), (1, "tokens")):
        size, wanted = find_size(mask, axis), find_size(inputs, axis)
        holds = both(
            holds,
            demand(
                compare_sizes(size, wanted),
                f"{name} must have shape (B, T), that of the tokens: got ",
                format_size(size),
                " for ",
                format_size(wanted),
                f" {what}.",
            ),
        )
    if isinstance(mask, keras.KerasTensor):
        return mask, True
    mask = ops.cast(mask, "bool")
    if holds is not True:
        # Read after the assertion, whose name of the argument is the caller's.
        mask = ops.logical_or(mask, ops.logical_not(holds))
    return mask, holds


def check_index(name, index):
    """Returns an index, an integer or a scalar tensor, or raises `ValueError`.

    Args:
        name: Name of the argument.
        index: From 0 to `2 ** 24`.
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
        raise ValueError(f"{name} must be {wanted}; got {_show(index)}.")
    return index


def format_size(size):
    """A size as a part of a message."""
    return (
        str(size)
        if find_static_size(size) is not None or size is None
        else size
    )


def as_tensor(name, value, wanted):
    """A tensor of numbers, lists and arrays included, or `ValueError`."""
    return _as_tensor(name, value, wanted, truth=True)


def check_truth_values(name, value, ranks, shape):
    """A tensor of truth values, or of 1 and 0 for them, or `ValueError`.

    Args:
        name: Name of the argument.
        value: Its value.
        ranks: Numbers of axes that are right.
        shape: The right shape, for the message.
    """
    wanted = f"truth values of shape {shape}"
    value = _as_tensor(name, value, wanted, truth=True)
    check_rank(name, value, ranks, shape)
    dtype = keras.backend.standardize_dtype(value.dtype)
    if keras.backend.is_float_dtype(dtype):
        raise ValueError(
            f"{name} must be {wanted}, true for what is seen; got {dtype}, "
            "perhaps numbers to add to scores: pass a comparison of them."
        )
    return value


def _as_tensor(name, value, wanted, *, truth=False):
    kinds = "iub" if truth else "iu"
    if isinstance(value, keras.KerasTensor) or ops.is_tensor(value):
        dtype = keras.backend.standardize_dtype(value.dtype)
        right = (
            keras.backend.is_int_dtype(dtype)
            or keras.backend.is_float_dtype(dtype)
            or (truth and dtype == "bool")
        )
    else:
        try:
            array = np.asarray(value)
            # Objects are lists of unequal lengths, or of tensors.
            right = array.dtype.kind in kinds + "f" and _fits_int32(array)
            if array.dtype.kind == "O" and isinstance(value, list | tuple):
                value, right = ops.stack(value), True
        except Exception:
            right = False
        if right:
            value = ops.convert_to_tensor(value)
    if not right:
        raise ValueError(f"{name} must be {wanted}; got {_show(value)}.")
    return value


def _show(value):
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        dtype = getattr(value.dtype, "name", value.dtype)
        return f"{dtype} of shape {tuple(value.shape)}"
    return described(value)


def _format(part):
    if isinstance(part, str):
        return part
    known = find_numbers(part)
    return str(part if known is None else known)
