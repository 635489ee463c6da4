"""Checks for the arguments of constructors and functions.

Each check returns the argument, converted to a plain Python number if it is a
number. Otherwise it raises `ValueError` with the argument's name, the expected
value and the value that was given.
"""

import difflib
import inspect
import math
import numbers
from collections.abc import Callable, Collection, Iterable
from typing import Any, Literal, TypeVar, overload

import keras
import numpy as np

from keras_lengen.types import FloatArray, Tensor

T = TypeVar("T")

LARGEST_POSITION = 2**24
"""Largest absolute value of a position.

Encodings compute in float32, which rounds larger integers to their neighbours.
"""

LARGEST_WIDTH = 2**16
"""Largest width of a layer inside an encoding."""

_LARGEST_INTEGER = 2**31 - 1
# Accelerators round numbers below the smallest normal one to 0.
_SMALLEST_FLOAT, _LARGEST_FLOAT = (
    float(limit)
    for limit in (np.finfo("float32").tiny, np.finfo("float32").max)
)


@overload
def check_integer(
    name: str,
    value: Any,
    *,
    least: int | None = 1,
    most: int | None = None,
    optional: Literal[False] = False,
    what: str = "",
) -> int: ...


@overload
def check_integer(
    name: str,
    value: Any,
    *,
    least: int | None = 1,
    most: int | None = None,
    optional: bool,
    what: str = "",
) -> int | None: ...


def check_integer(
    name: str,
    value: Any,
    *,
    least: int | None = 1,
    most: int | None = None,
    optional: bool = False,
    what: str = "",
) -> int | None:
    """Returns an integer in `least .. most`, or raises `ValueError`.

    Args:
        name: str. Name of the argument.
        value: Value of the argument.
        least: int, smallest value allowed; `None`: no bound.
        most: int, largest value allowed; `None`: that of int32.
        optional: bool. Whether `None` is allowed.
        what: str. What the number means, for the error message.

    Returns:
        int, or `None` if `value` is `None` and `optional` is true.

    Raises:
        ValueError: If `value` is not such an integer.
    """
    if optional and value is None:
        return None
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        number = int(value)
        if most is None and number > _LARGEST_INTEGER:
            most = _LARGEST_INTEGER
        if _in_range(number, least, most):
            return number
    raise _make_error(
        name, _describe_kind("an integer", least, most, optional), what, value
    )


@overload
def check_number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    optional: Literal[False] = False,
    what: str = "",
) -> float: ...


@overload
def check_number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    optional: bool,
    what: str = "",
) -> float | None: ...


def check_number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    optional: bool = False,
    what: str = "",
) -> float | None:
    """Returns a finite number in a range, or raises `ValueError`.

    The number must be within the range of float32, and within the bounds when
    rounded to float32.

    Args:
        name: str. Name of the argument.
        value: Value of the argument.
        least: Number, smallest value allowed; `None`: no bound.
        above: Number, exclusive lower bound; `None`: no bound.
        most: Number, largest value allowed; `None`: no bound.
        optional: bool. Whether `None` is allowed.
        what: str. What the number means, for the error message.

    Returns:
        int or float, or `None` if `value` is `None` and `optional` is true.

    Raises:
        ValueError: If `value` is not such a number.
    """
    if optional and value is None:
        return None
    if _is_finite(value):
        if not fits_float32(value):
            kind = (
                f"0 or a number from {_SMALLEST_FLOAT:.2g} to "
                f"{_LARGEST_FLOAT:.2g} in size, the range of float32"
            )
            raise _make_error(name, kind, what, value)
        if _in_range(value, least, most) and (
            above is None or np.float32(float(value)) > above
        ):
            # Backends convert no larger integer to a tensor.
            small = abs(value) <= _LARGEST_INTEGER
            integral = small and isinstance(value, numbers.Integral)
            return int(value) if integral else float(value)
    kind = _describe_kind("a finite number", least, most, optional, above)
    raise _make_error(name, kind, what, value)


@overload
def check_share(
    name: str, value: Any, *, optional: Literal[False] = False, what: str = ""
) -> float: ...


@overload
def check_share(
    name: str, value: Any, *, optional: bool, what: str = ""
) -> float | None: ...


def check_share(
    name: str, value: Any, *, optional: bool = False, what: str = ""
) -> float | None:
    """Returns a number in `[0, 1)`, or raises `ValueError`."""
    if optional and value is None:
        return None
    if _is_finite(value) and 0 <= value < 1 and np.float32(float(value)) < 1:
        return check_number(name, value)
    kind = "a number of at least 0 and below 1" + ", or None" * optional
    raise _make_error(name, kind, what, value)


def check_boolean(name: str, value: Any) -> bool:
    """Returns `True` or `False`, or raises `ValueError`."""
    if isinstance(value, bool):
        return value
    raise _make_error(name, "True or False", "", value)


def check_choice(name: str, value: T, choices: Iterable[Any]) -> T:
    """Returns the value if it is one of `choices`, or raises `ValueError`."""
    # Types are compared too, because 1 equals True.
    for choice in choices:
        if type(value) is type(choice) and value == choice:
            return value
    *others, last = (
        f'"{choice}"' if isinstance(choice, str) else repr(choice)
        for choice in choices
    )
    raise _make_error(name, f"{', '.join(others)} or {last}", "", value)


def check_seed(value: Any) -> int | None:
    """Returns a seed, an int below 2**31 or `None`, or raises `ValueError`."""
    return check_integer("seed", value, least=0, most=2**31 - 1, optional=True)


@overload
def check_instance(
    name: str,
    value: Any,
    cls: type[T],
    *,
    example: str,
    optional: Literal[False],
) -> T: ...


@overload
def check_instance(
    name: str,
    value: Any,
    cls: type[T],
    *,
    example: str,
    optional: bool = True,
) -> T | None: ...


def check_instance(
    name: str,
    value: Any,
    cls: type[T],
    *,
    example: str,
    optional: bool = True,
) -> T | None:
    """Returns an instance of a class, or raises `ValueError`.

    Args:
        name: str. Name of the argument.
        value: Value of the argument.
        cls: Class of which the value must be an instance.
        example: str. Valid Python expression, for the error message.
        optional: bool. Whether `None` is allowed.

    Returns:
        The value.

    Raises:
        ValueError: If the value is not an instance of the class.
    """
    if isinstance(value, cls) or (optional and value is None):
        return value
    kind = f"a {cls.__name__} such as {example}" + (
        ", or None" if optional else ""
    )
    if inspect.isclass(value) and issubclass(value, cls):
        raise ValueError(
            f"{name} must be {kind}; got the class {value.__name__}: call it, "
            f"{value.__name__}(...)."
        )
    raise _make_error(name, kind, "", value)


def check_subclass(name: str, value: Any, cls: type[T]) -> type[T] | None:
    """Returns a subclass of a class or `None`, or raises `ValueError`."""
    if value is None or (inspect.isclass(value) and issubclass(value, cls)):
        return value
    raise _make_error(
        name, f"{cls.__name__}, a subclass of it, or None", "", value
    )


def check_activation(name: str, value: Any) -> Callable[[Tensor], Tensor]:
    """Returns the activation function for a name, config or function.

    Raises:
        ValueError: If Keras has no such activation.
    """
    return _resolve(
        name,
        value,
        keras.activations.get,
        'an activation of Keras such as "relu", or a function',
    )


def check_initializer(name: str, value: Any, *, optional: bool = True) -> Any:
    """Returns the initializer for a name, config or initializer.

    Raises:
        ValueError: If Keras has no such initializer.
    """
    kind = 'an initializer of Keras such as "glorot_uniform"'
    if value is None and not optional:
        raise _make_error(name, kind, "", value)
    return _resolve(
        name, value, keras.initializers.get, kind + ", or None" * optional
    )


def check_callable(name: str, value: Any) -> Callable[..., Any]:
    """Returns a function, or raises `ValueError`."""
    if callable(value) and not _is_misplaced(value):
        return value
    raise _make_error(name, "a function", "", value)


def check_numbers(
    name: str,
    value: Any,
    *,
    shape: str = "of any shape",
    axes: int | None = None,
    most: float | None = None,
) -> FloatArray:
    """Returns finite numbers as a float64 array, or raises `ValueError`.

    Args:
        name: str. Name of the argument.
        value: A number, an array, or a nested list of numbers.
        shape: str. The expected shape, for the error message.
        axes: int, expected number of axes; `None`: any number.
        most: Number, largest absolute value allowed; `None`: no bound.

    Returns:
        float64 array of the shape of `value`.

    Raises:
        ValueError: If `value` does not hold such numbers.
    """
    kind = "finite numbers" + ("" if most is None else f" up to {most} in size")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        array = None  # Nested lists of unequal lengths.
    if array is None or array.dtype.kind not in "iuf":
        raise _make_error(name, f"{kind}, {shape}", "", value)
    if axes not in (None, array.ndim):
        raise ValueError(
            f"{name} must be {kind}, {shape}; got shape {array.shape}."
        )
    array = array.astype("float64")
    wrong = ~np.isfinite(array) | (np.abs(array) > (most or np.inf))
    if wrong.any():
        raise _make_error(name, f"{kind}, {shape}", "", array[wrong][0].item())
    return array


def check_keys(
    given: Iterable[Any], known: Collection[str], owner: str
) -> None:
    """Raises `ValueError` if a given key is not among the known keys.

    Args:
        given: Keys to check.
        known: Allowed keys.
        owner: str. Name of the dict, for the error message.
    """
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f": did you mean {near[0]}?" if near else "."
            raise ValueError(
                f"{owner} must not have the key {name!r}{hint} It may have "
                f"{', '.join(sorted(known))}."
            )


def described(value: Any) -> str:
    """Describes a value in at most 80 characters, for an error message."""
    if isinstance(value, keras.layers.Layer):
        return f"a {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _resolve(
    name: str, value: Any, get: Callable[[Any], Any], kind: str
) -> Any:
    if value is None or isinstance(value, str | dict) or callable(value):
        try:
            found = get(value)
        except (ValueError, TypeError):
            # Keras' error does not name the argument.
            raise _make_error(name, kind, "", value) from None
        if not _is_misplaced(found):
            return found
    raise _make_error(name, kind, "", value)


def _is_misplaced(found: Any) -> bool:
    """Whether a value is a class, or a layer of this library."""
    package, *_ = type(found).__module__.split(".")
    return inspect.isclass(found) or (
        isinstance(found, keras.layers.Layer) and package == "keras_lengen"
    )


def _is_finite(value: Any) -> bool:
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False  # An integer too large for a float.


def fits_float32(value: float) -> bool:
    """Whether a finite number keeps its size when rounded to float32."""
    return value == 0 or _SMALLEST_FLOAT <= abs(value) <= _LARGEST_FLOAT


def _in_range(value: float, least: float | None, most: float | None) -> bool:
    return (least is None or value >= least) and (most is None or value <= most)


def _describe_kind(
    kind: str,
    least: float | None,
    most: float | None,
    optional: bool,
    above: float | None = None,
) -> str:
    if kind == "an integer" and least == 1 and most is None:
        kind = "a positive integer"
    elif least is not None and most is not None:
        kind += f" from {least} to {most}"
    elif above is not None:
        kind += f" above {above}"
        if most is not None:
            kind += f" and at most {most}"
    elif least is not None:
        kind += f" of at least {least}"
    return kind + (", or None" if optional else "")


def _make_error(name: str, kind: str, what: str, value: Any) -> ValueError:
    what = f", {what}" if what else ""
    return ValueError(f"{name} must be {kind}{what}; got {described(value)}.")


def constructor_arguments(cls: type) -> dict[str, inspect.Parameter]:
    """Lists the constructor arguments that a class adds to those of Keras.

    Args:
        cls: Class of this library.

    Returns:
        Dict from argument names to `inspect.Parameter`: the arguments of the
        class itself, then those of its bases.
    """
    found: dict[str, inspect.Parameter] = {}
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] == "keras":
            break
        if "__init__" not in vars(base) or base is object:
            continue
        _, *own = inspect.signature(vars(base)["__init__"]).parameters.values()
        for parameter in own:
            if parameter.kind not in (
                parameter.VAR_KEYWORD,
                parameter.VAR_POSITIONAL,
            ):
                found.setdefault(parameter.name, parameter)
    return found
