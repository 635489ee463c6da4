"""Checks of the arguments that constructors and functions take.

Each check returns the argument, as a plain Python number where it is one, or
raises `ValueError` with the argument's name, what was expected and what came.
"""

import difflib
import inspect
import math
import numbers

import keras
import numpy as np

LARGEST_POSITION = 2**24
"""Beyond it float32, in which encodings compute, merges neighbours."""


def check_integer(name, value, *, least=1, most=None, optional=False, what=""):
    """Returns an integer in `least .. most`, or raises `ValueError`.

    Args:
        name: Name of the argument.
        value: Its value.
        least: Smallest value allowed, or `None`.
        most: Largest value allowed, or `None`.
        optional: Whether `None` is allowed.
        what: What the number is, for the message.
    """
    if optional and value is None:
        return None
    fits = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if fits and _in_range(int(value), least, most):
        return int(value)
    raise _wrong(name, _kind("an integer", least, most, optional), what, value)


def check_number(
    name, value, *, least=None, above=None, most=None, optional=False, what=""
):
    """Returns a finite number in a range, or raises `ValueError`.

    Args:
        name: Name of the argument.
        value: Its value.
        least: Smallest value allowed, or `None`.
        above: Number that it must be larger than, or `None`.
        most: Largest value allowed, or `None`.
        optional: Whether `None` is allowed.
        what: What the number is, for the message.
    """
    if optional and value is None:
        return None
    if (
        _is_finite(value)
        and _in_range(value, least, most)
        and (above is None or value > above)
    ):
        integral = isinstance(value, numbers.Integral)
        return int(value) if integral else float(value)
    kind = _kind("a finite number", least, most, optional, above)
    raise _wrong(name, kind, what, value)


def check_share(name, value, *, optional=False, what=""):
    """Returns a number from 0 to below 1, or raises `ValueError`."""
    if optional and value is None:
        return None
    if _is_finite(value) and 0 <= value < 1:
        return check_number(name, value)
    kind = "a number of at least 0 and below 1" + ", or None" * optional
    raise _wrong(name, kind, what, value)


def check_boolean(name, value):
    """Returns `True` or `False`, or raises `ValueError`."""
    if isinstance(value, bool):
        return value
    raise _wrong(name, "True or False", "", value)


def check_choice(name, value, choices):
    """Returns one of some values, or raises `ValueError`."""
    # By type too: 1 equals True.
    for choice in choices:
        if type(value) is type(choice) and value == choice:
            return value
    *others, last = (
        f'"{choice}"' if isinstance(choice, str) else repr(choice)
        for choice in choices
    )
    raise _wrong(name, f"{', '.join(others)} or {last}", "", value)


def check_seed(value):
    """Returns a seed, an integer or `None`, or raises `ValueError`."""
    return check_integer("seed", value, least=0, most=2**31 - 1, optional=True)


def check_instance(name, value, cls, *, example, optional=True):
    """Returns an instance of a class, or raises `ValueError`.

    Args:
        name: Name of the argument.
        value: Its value.
        cls: Class that it must be an instance of.
        example: What a user could write instead, for the message.
        optional: Whether `None` is allowed.
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
    raise _wrong(name, kind, "", value)


def check_subclass(name, value, cls):
    """Returns a subclass of a class or `None`, or raises `ValueError`."""
    if value is None or (inspect.isclass(value) and issubclass(value, cls)):
        return value
    raise _wrong(name, f"{cls.__name__}, a subclass of it, or None", "", value)


def check_activation(name, value):
    """Returns Keras' activation of a name, or raises `ValueError`."""
    return _resolved(
        name,
        value,
        keras.activations.get,
        'an activation of Keras such as "relu", or a function',
    )


def check_initializer(name, value, *, optional=True):
    """Returns Keras' initializer of a name, or raises `ValueError`."""
    kind = 'an initializer of Keras such as "glorot_uniform"'
    if value is None and not optional:
        raise _wrong(name, kind, "", value)
    return _resolved(
        name, value, keras.initializers.get, kind + ", or None" * optional
    )


def check_callable(name, value):
    """Returns a function, or raises `ValueError`."""
    if callable(value) and not _is_misplaced(value):
        return value
    raise _wrong(name, "a function", "", value)


def check_numbers(name, value, *, shape="of any shape", axes=None, most=None):
    """Returns finite numbers as a float64 array, or raises `ValueError`.

    Args:
        name: Name of the argument.
        value: A number, a nest of lists of them, or an array.
        shape: The right shape, for the message.
        axes: Number of axes, `None` for any.
        most: Largest absolute value allowed, or `None`.
    """
    kind = "finite numbers" + ("" if most is None else f" up to {most} in size")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        array = None  # Lists of unequal lengths.
    if array is None or array.dtype.kind not in "iuf":
        raise _wrong(name, f"{kind}, {shape}", "", value)
    if axes not in (None, array.ndim):
        raise ValueError(
            f"{name} must be {kind}, {shape}; got shape {array.shape}."
        )
    array = array.astype("float64")
    wrong = ~np.isfinite(array) | (np.abs(array) > (most or np.inf))
    if wrong.any():
        raise _wrong(name, f"{kind}, {shape}", "", array[wrong][0].item())
    return array


def check_keys(given, known, owner):
    """Raises `ValueError` if a key of a dict is not among the known ones."""
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f": did you mean {near[0]}?" if near else "."
            raise ValueError(
                f"{owner} must not have the key {name!r}{hint} It may have "
                f"{', '.join(sorted(known))}."
            )


def described(value):
    """A value as a message shows it, in a few words."""
    if isinstance(value, keras.layers.Layer):
        return f"a {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _resolved(name, value, get, kind):
    if value is None or isinstance(value, str | dict) or callable(value):
        try:
            found = get(value)
        except (ValueError, TypeError):
            # What follows says the same with the argument's name.
            raise _wrong(name, kind, "", value) from None
        if not _is_misplaced(found):
            return found
    raise _wrong(name, kind, "", value)


def _is_misplaced(found):
    """Whether something is a class, or a layer of this library."""
    package, *_ = type(found).__module__.split(".")
    return inspect.isclass(found) or (
        isinstance(found, keras.layers.Layer) and package == "keras_lengen"
    )


def _is_finite(value):
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False  # An integer beyond all floats.


def _in_range(value, least, most):
    return (least is None or value >= least) and (most is None or value <= most)


def _kind(kind, least, most, optional, above=None):
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


def _wrong(name, kind, what, value):
    what = f", {what}" if what else ""
    return ValueError(f"{name} must be {kind}{what}; got {described(value)}.")


def constructor_arguments(cls):
    """The arguments that a class of ours and its bases add to Keras' own.

    Args:
        cls: Class of this library.

    Returns:
        Dict from names to `inspect.Parameter`, those of the class first.
    """
    found: dict[str, inspect.Parameter] = {}
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] == "keras":
            break
        if "__init__" not in vars(base) or base is object:
            continue
        _, *own = inspect.signature(base.__init__).parameters.values()
        for parameter in own:
            if parameter.kind not in (
                parameter.VAR_KEYWORD,
                parameter.VAR_POSITIONAL,
            ):
                found.setdefault(parameter.name, parameter)
    return found
