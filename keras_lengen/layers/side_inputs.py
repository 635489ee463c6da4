"""Checks of the inputs other than the tokens: positions, lengths and masks.

Values and sizes that are known when a layer is called are checked at once, and
errors raise `ValueError`. Those that are known only when a compiled program
runs are checked by an assertion in the program. Assertions do not run under
XLA and in compiled JAX programs; there, `where_holds` turns results to NaN.
"""

import inspect
import numbers

import keras
import numpy as np
from keras import ops

from keras_lengen.arguments import LARGEST_POSITION, described

INVALID_POSITION = -(2**31)
"""Marks an invalid integer position; cast to float, it becomes NaN."""


def demand(holds, *message):
    """Requires a condition, now or when the compiled program runs.

    Args:
        holds: bool, or a boolean tensor whose entries must all be true.
        *message: Strings and numbers, which are joined to the error message.

    Returns:
        `True`, or `holds` for `where_holds` if it is known only at run time.

    Raises:
        ValueError: If the condition is known not to hold. At run time, an
            assertion fails instead.
    """
    if isinstance(holds, keras.KerasTensor):
        return True
    known = find_numbers(holds)
    if known is None:
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            # XLA leaves assertions out.
            assertion = tf.debugging.Assert(tf.reduce_all(holds), list(message))
            # The assertion must run before any operation that would fail with
            # another message.
            with tf.control_dependencies([assertion]):
                return tf.identity(holds)
        return holds
    if not known.all():
        raise ValueError("".join(map(_format, message)))
    return True


def both(first, second):
    """Combines two conditions, each `True` or a boolean tensor, by "and"."""
    if first is True:
        return second
    return first if second is True else ops.logical_and(first, second)


def where_holds(holds, tensor):
    """Replaces the entries of examples whose condition fails by NaN.

    Args:
        holds: `True`, or a boolean tensor `()` or `(B,)`.
        tensor: Tensor of any shape; `(B, ...)` if `holds` is `(B,)` and the
            tensor has more than one axis. Integers are taken for positions,
            and are replaced by `INVALID_POSITION`.

    Returns:
        A tensor of the same shape. If `holds` is `(B,)` and `tensor` has one
        axis, all entries are replaced if any condition fails.
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


def find_static_size(size):
    """Returns the size of an axis, `None` if known only at run time."""
    return size if isinstance(size, int) else None


def compare_sizes(first, second):
    """Whether two sizes of axes are equal: a bool, or a boolean tensor."""
    if first is None or second is None:
        return True  # An unknown size of a symbolic tensor; checked later.
    if not (ops.is_tensor(first) or ops.is_tensor(second)):
        if isinstance(first, int) and isinstance(second, int):
            return first == second
        if first == second:
            return True
    return ops.equal(as_size(first), as_size(second))


def as_size(size):
    """Converts the size of an axis to an int or an int32 scalar tensor."""
    return (
        size
        if isinstance(size, int)
        else ops.cast(ops.convert_to_tensor(size), "int32")
    )


def find_size(tensor, axis):
    """Finds the size of an axis: an int, a scalar tensor or `None`.

    `None` stands for an unknown size of a symbolic tensor.
    """
    if isinstance(tensor, keras.KerasTensor):
        return tensor.shape[axis]
    return ops.shape(tensor)[axis]


def is_integer(tensor):
    """Whether the dtype of a tensor is an integer dtype, other than bool."""
    return keras.backend.is_int_dtype(
        keras.backend.standardize_dtype(tensor.dtype)
    )


def as_signed(tensor):
    """Casts integers to a signed dtype, int32 or int64."""
    dtype = keras.backend.standardize_dtype(tensor.dtype)
    wide = dtype in ("int64", "uint32", "uint64")
    return ops.cast(tensor, "int64" if wide else "int32")


class NamedInputs(keras.layers.Layer):
    """Mixin whose errors name the argument that Keras cannot convert.

    List it before the class of the layer among the base classes.
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
    """Raises `ValueError` unless arguments are tensors, arrays or `None`."""
    for name, value in tensors.items():
        if value is not None and not is_convertible(value):
            wanted = "a tensor of numbers"
            if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
                wanted += " that fit 32 bits"
            raise ValueError(f"{name} must be {wanted}; got {show(value)}.")


def is_convertible(value):
    """Whether a value is a tensor, or an array that Keras can convert."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind not in "OSUc" and _fits_int32(value)
    return hasattr(value, "shape") and is_dense(value) and _is_numeric(value)


def is_dense(value):
    """Whether a value is no ragged and no sparse tensor."""
    if isinstance(value, keras.KerasTensor):
        return not (getattr(value, "ragged", False) or value.sparse)
    return type(value).__name__ not in _IRREGULAR


_IRREGULAR = {
    "RaggedTensor": "pad it, as by its method to_tensor",
    "SparseTensor": "make it dense, as by tf.sparse.to_dense",
    "BCOO": "make it dense, as by its method todense",
}
"""Advice on tensors whose entries are no regular array, by their class."""


def _is_numeric(tensor):
    """Whether a tensor holds real numbers or booleans."""
    dtype = str(getattr(tensor.dtype, "name", tensor.dtype))
    return not dtype.startswith(
        ("complex", "str", "object", "resource", "variant")
    )


def _fits_int32(array):
    """Whether all integers fit 32 bits; JAX drops the higher bits."""
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 4:
        return True
    return not array.size or bool(
        array.min() >= -(2**31) and array.max() < 2**31
    )


def check_rank(name, tensor, ranks, shape):
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


def check_same_size(axis, **tensors):
    """Requires that two tensors have the same size along an axis.

    Args:
        axis: int, index of the axis: 0, 1, 2 or -1.
        **tensors: Two tensors, by the names of their arguments.

    Returns:
        `True`, or a boolean tensor if sizes are known only at run time.
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
    """Returns valid positions of tokens, or raises `ValueError`.

    Args:
        positions: Tensor, array or list of numbers `(T,)`, `(1, T)` or
            `(B, T)`, or a pair of these.
        inputs: Tensor `(B, T, ...)`; only its shape is read.
        name: str, name of the argument, for the error message.

    Returns:
        Integer or float tensor `(T,)` or `(B, T)`, or a pair of these.
        Positions that prove wrong only at run time are invalid.
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
                    f"{name} of shape (B, T) must have one row for each "
                    "example: got ",
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
    """Checks that float32 tells the positions of each example apart.

    Returns:
        `True`, or a boolean tensor `()` or `(B,)`.
    """
    # The comparison is false for NaN.
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
    """Whether positions are a pair, those of rows and those of columns."""
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
        lengths: Integers of shape `()` or `(B,)`, or `None`.
        inputs: Tensor `(B, T, ...)`; only its shape is read.
        name: str, name of the argument, for the error message.

    Returns:
        The lengths as an int32 tensor or `None`; and for `where_holds` whether
        they are valid, `True` or a boolean tensor of the lengths' shape.
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
        # Invalid lengths stay invalid if they are checked again.
        lengths = ops.where(inside, lengths, -1)
    return lengths, both(holds, inside)


def check_reference_length(length, inputs, *, name="reference_length"):
    """Returns a valid length to scale by, or raises `ValueError`.

    Args:
        length: Numbers above 0 of shape `()` or `(B,)`, or `None`.
        inputs: Tensor `(B, T, ...)`; only its shape is read.
        name: str, name of the argument, for the error message.

    Returns:
        float32 tensor `()` or `(B,)`, or `None`. Lengths that prove wrong only
        at run time are NaN.
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
    """Checks that there is one length, or one for each example.

    Returns:
        `True`, or a boolean tensor if sizes are known only at run time.
    """
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
    """Checks a padding mask.

    Args:
        mask: Boolean tensor `(B, T)`, true for real tokens, or `None`.
        inputs: Tensor `(B, T, ...)`; only its shape is read.
        name: str, name of the argument, for the error message.

    Returns:
        The mask as a boolean tensor or `None`; and for `where_holds` whether
        its shape is right, `True` or a boolean tensor.
    """
    if mask is None:
        return None, True
    mask, holds = check_truth_values(name, mask, (2,), "(B, T)")
    for axis, what in ((0, "examples"), (1, "tokens")):
        size, wanted = find_size(mask, axis), find_size(inputs, axis)
        holds = both(
            holds,
            demand(
                compare_sizes(size, wanted),
                f"{name} must have the shape (B, T) of the tokens: got ",
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
        # Depends on `holds`, so that the assertion, which names the caller's
        # argument, runs before the mask is used.
        mask = ops.logical_or(mask, ops.logical_not(holds))
    return mask, holds


def check_index(name, index):
    """Returns a valid index, or raises `ValueError`.

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


def format_size(size):
    """Formats a size as a part of the message of `demand`."""
    return (
        str(size)
        if find_static_size(size) is not None or size is None
        else size
    )


def as_tensor(name, value, wanted):
    """Converts a tensor, array or list of numbers or booleans to a tensor.

    Args:
        name: str, name of the argument, for the error message.
        value: Value of the argument.
        wanted: str, expected value, for the error message.

    Raises:
        ValueError: If the value is not made of numbers.
    """
    return _as_tensor(name, value, wanted, truth=True)


def check_truth_values(name, value, ranks, shape):
    """Checks truth values: booleans, or the integers 1 and 0.

    Args:
        name: str, name of the argument, for the error message.
        value: Value of the argument.
        ranks: tuple of ints, allowed numbers of axes.
        shape: str, expected shape, for the error message.

    Returns:
        A tensor of booleans or integers; and for `where_holds` whether all
        integers are 0 or 1, `True` or a boolean tensor `()`.

    Raises:
        ValueError: If the value is known to be no such tensor.
    """
    wanted = f"truth values of shape {shape}"
    value = _as_tensor(name, value, wanted, truth=True)
    check_rank(name, value, ranks, shape)
    dtype = keras.backend.standardize_dtype(value.dtype)
    if keras.backend.is_float_dtype(dtype):
        raise ValueError(
            f"{name} must be {wanted}, true for visible tokens; got {dtype}, "
            "perhaps numbers to add to scores: pass a comparison such as "
            "mask == 0."
        )
    if dtype == "bool" or isinstance(value, keras.KerasTensor):
        return value, True
    value = as_signed(value)
    return value, demand(
        ops.all(ops.logical_or(value == 0, value == 1)),
        f"{name} must be {wanted}, True or 1 for visible tokens and False or 0 "
        "for hidden ones; got integers from ",
        ops.min(value, initial=0),
        " to ",
        ops.max(value, initial=0),
        ".",
    )


def _as_tensor(name, value, wanted, *, truth=False):
    kinds = "iub" if truth else "iu"
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


def show(value):
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


def _format(part):
    if isinstance(part, str):
        return part
    known = find_numbers(part)
    return str(part if known is None else known)
