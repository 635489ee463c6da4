"""Declarations of arguments: valid values, examples and checks.

A function checks an argument by its declaration:

>>> Integer(most=9).check("width", 4)
4
>>> Integer(most=9).check("width", 10)
Traceback (most recent call last):
...
ValueError: width must be an integer from 1 to 9; got 10.

A class declares the arguments of its constructor by `constructors.argument`.
"""

import difflib
import inspect
import math
import numbers
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

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

SYNONYMS = {
    "act": ("activation",),
    "base": ("max_wavelength",),
    "block_size": ("max_position", "chunk_size"),
    "context_length": ("max_position", "train_length"),
    "d_ff": ("feedforward_dim",),
    "d_model": ("model_dim",),
    "depth": ("num_layers",),
    "dim": ("model_dim", "key_dim"),
    "embed_dim": ("model_dim",),
    "embedding_dim": ("model_dim",),
    "factor": ("scaling_factor",),
    "ffn_dim": ("feedforward_dim",),
    "head_dim": ("key_dim",),
    "head_size": ("key_dim",),
    "hidden_dim": ("model_dim",),
    "hidden_size": ("model_dim",),
    "intermediate_dim": ("feedforward_dim",),
    "intermediate_size": ("feedforward_dim",),
    "max_len": ("max_position",),
    "max_length": ("max_position",),
    "max_seq_len": ("max_position",),
    "max_sequence_length": ("max_position",),
    "n_ctx": ("max_position", "train_length"),
    "n_embd": ("model_dim",),
    "n_positions": ("max_position",),
    "rope_theta": ("max_wavelength",),
    "rotary_dim": ("rotary_fraction",),
    "theta": ("max_wavelength",),
    "window": ("sliding_window",),
    "window_size": ("sliding_window", "window"),
}
"""Names of arguments in other libraries, with ours of the same meaning."""

_LARGEST_INTEGER = 2**31 - 1
# Accelerators round numbers below the smallest normal one to 0.
_SMALLEST_FLOAT, _LARGEST_FLOAT = (
    float(limit)
    for limit in (np.finfo("float32").tiny, np.finfo("float32").max)
)


class Argument(Generic[T]):
    """Declaration of an argument.

    A subclass implements `convert` and `describe`.

    Args:
        example: A valid value other than the default.
        what: str. Meaning of the value, for the error message.
        variant: bool. Whether the example selects another formula, so that all
            tests also run with it.

    Attributes:
        name: str, name of the attribute, if it is one of a class.
        parameter: `inspect.Parameter` of a constructor that follows from the
            declaration, or `None`.
    """

    name = ""
    parameter: inspect.Parameter | None = None

    def __init__(
        self,
        *,
        example: Any = None,
        what: str = "",
        variant: bool = False,
    ) -> None:
        self.example = example
        self.what = what
        self.variant = variant

    @property
    def keyword(self) -> str:
        """Name of the argument."""
        return self.name if self.parameter is None else self.parameter.name

    @property
    def examples(self) -> tuple[Any, ...]:
        """Valid values."""
        return (self.example,)

    def convert(self, value: Any) -> T:
        """Returns the value, as a plain Python number if it is a number.

        Raises:
            InvalidArgument: If the value is invalid.
        """
        raise NotImplementedError

    def describe(self) -> str:
        """Describes the valid values, such as `"a positive integer"`."""
        raise NotImplementedError

    def check(self, name: str, value: Any) -> T:
        """Returns the value, or raises `ValueError`.

        Args:
            name: str. Name of the argument, for the error message.
            value: Value of the argument.

        Returns:
            The value, converted to a plain Python number if it is a number.

        Raises:
            ValueError: If the value is invalid. The message has the name, the
                valid values and the given value.
        """
        try:
            return self.convert(value)
        except InvalidArgument as error:
            if error.sentence:
                raise ValueError(name + error.sentence) from None
            what = f", {self.what}" if self.what else ""
            expected = error.expected or self.describe() + what
            got = error.got or described(value)
            raise ValueError(f"{name} must be {expected}; got {got}.") from None

    def admits(self, value: Any) -> bool:
        """Whether a value is valid."""
        try:
            self.convert(value)
        except InvalidArgument:
            return False
        return True

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.describe()}>"

    def serialize(self, value: Any) -> Any:
        """Returns the form of a valid value in a configuration."""
        return value

    def deserialize(self, config: Any) -> Any:
        """Returns the value that `serialize` has converted."""
        return config

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        try:
            return vars(instance)[self.name]
        except KeyError:
            raise AttributeError(self.name) from None

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)[self.name] = self.check(self.keyword, value)


class InvalidArgument(Exception):
    """An invalid value.

    Attributes:
        expected: str. The expected value, if the declaration's own description
            does not fit, or `""`.
        got: str. Description of the given value, or `""` for the value itself.
        sentence: str. The text after the argument's name, if it is not built
            from the other two, or `""`.
    """

    def __init__(
        self, expected: str = "", got: str = "", *, sentence: str = ""
    ) -> None:
        super().__init__(expected)
        self.expected = expected
        self.got = got
        self.sentence = sentence


class Integer(Argument[int]):
    """An integer in `least .. most`.

    Args:
        least: int, smallest value allowed; `None`: no bound.
        most: int, largest value allowed; `None`: that of int32.
        **kwargs: Arguments of `Argument`.
    """

    def __init__(
        self, least: int | None = 1, most: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.least = least
        self.most = most

    def convert(self, value: Any) -> int:
        if not isinstance(value, numbers.Integral) or isinstance(value, bool):
            raise InvalidArgument
        number = int(value)
        if self.most is None and number > _LARGEST_INTEGER:
            raise InvalidArgument(
                _describe_bounds("an integer", self.least, _LARGEST_INTEGER)
            )
        if not _in_range(number, self.least, self.most):
            raise InvalidArgument
        return number

    def describe(self) -> str:
        if self.least == 1 and self.most is None:
            return "a positive integer"
        return _describe_bounds("an integer", self.least, self.most)


class Number(Argument[float]):
    """A finite number in a range.

    The number must be within the range of float32, and within the bounds when
    rounded to float32.

    Args:
        least: Number, smallest value allowed; `None`: no bound.
        most: Number, largest value allowed; `None`: no bound.
        above: Number, exclusive lower bound; `None`: no bound.
        below: Number, exclusive upper bound; `None`: no bound.
        **kwargs: Arguments of `Argument`.
    """

    def __init__(
        self,
        least: float | None = None,
        most: float | None = None,
        *,
        above: float | None = None,
        below: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.least = least
        self.most = most
        self.above = above
        self.below = below

    def convert(self, value: Any) -> float:
        if not _is_finite(value):
            raise InvalidArgument
        if not fits_float32(value):
            raise InvalidArgument(
                f"0 or a number from {_SMALLEST_FLOAT:.2g} to "
                f"{_LARGEST_FLOAT:.2g} in size, the range of float32"
            )
        rounded = np.float32(float(value))
        if not (
            _in_range(value, self.least, self.most)
            and (self.above is None or rounded > self.above)
            and (self.below is None or rounded < self.below)
        ):
            raise InvalidArgument
        # Backends convert no larger integer to a tensor.
        small = abs(value) <= _LARGEST_INTEGER
        integral = small and isinstance(value, numbers.Integral)
        return int(value) if integral else float(value)

    def describe(self) -> str:
        return _describe_bounds(
            "a finite number" if self.below is None else "a number",
            self.least,
            self.most,
            self.above,
            self.below,
        )


class Boolean(Argument[bool]):
    """`True` or `False`."""

    @property
    def examples(self) -> tuple[bool, ...]:
        return (True, False)

    def convert(self, value: Any) -> bool:
        if isinstance(value, bool):
            return value
        raise InvalidArgument

    def describe(self) -> str:
        return "True or False"


class Choice(Argument[T]):
    """One of several values.

    Args:
        *choices: The values.
        **kwargs: Arguments of `Argument`.
    """

    def __init__(self, *choices: T, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.choices = choices

    @property
    def examples(self) -> tuple[T, ...]:
        return self.choices

    def convert(self, value: Any) -> T:
        # Types are compared too, because 1 equals True.
        for choice in self.choices:
            if type(value) is type(choice) and value == choice:
                return choice
        raise InvalidArgument

    def describe(self) -> str:
        *others, last = (
            f'"{choice}"' if isinstance(choice, str) else repr(choice)
            for choice in self.choices
        )
        return f"{', '.join(others)} or {last}"


class Optional(Argument[T | None]):
    """A value that another declaration accepts, or `None`.

    Args:
        inner: `Argument`, the other declaration.
    """

    def __init__(self, inner: Argument[T]) -> None:
        super().__init__(what=inner.what, variant=inner.variant)
        self.inner = inner

    @property
    def examples(self) -> tuple[Any, ...]:
        return (*self.inner.examples, None)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.inner.name = name

    def convert(self, value: Any) -> T | None:
        if value is None:
            return None
        try:
            return self.inner.convert(value)
        except InvalidArgument as error:
            if error.expected:
                error.expected += ", or None"
            raise

    def describe(self) -> str:
        return f"{self.inner.describe()}, or None"

    def serialize(self, value: Any) -> Any:
        return None if value is None else self.inner.serialize(value)

    def deserialize(self, config: Any) -> Any:
        return None if config is None else self.inner.deserialize(config)


class OrDefault(Optional[T]):
    """Like `Optional`, if the constructor replaces `None` by a valid value."""

    @property
    def examples(self) -> tuple[Any, ...]:
        return self.inner.examples

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type) -> Self: ...

        @overload
        def __get__(self, instance: object, owner: type) -> T: ...

        def __get__(self, instance: Any, owner: type) -> Any: ...

    def __set__(self, instance: Any, value: T | None) -> None:
        super().__set__(instance, value)


class Seed(Optional[int]):
    """A seed of random draws, an integer below `2 ** 31`, or `None`."""

    def __init__(self) -> None:
        super().__init__(Integer(0, _LARGEST_INTEGER, example=3))


class Instance(Argument[T]):
    """An instance of a class.

    Args:
        cls: The class.
        code: str. Python expression of a valid value, for the error message.
        absent: Makes the instance that `None` stands for; `None`: the argument
            is required.
        **kwargs: Arguments of `Argument`.
    """

    def __init__(
        self,
        cls: type[T],
        code: str,
        *,
        absent: Callable[[], T] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.cls = cls
        self.code = code
        self.absent = absent

    def convert(self, value: Any) -> T:
        if value is None and self.absent is not None:
            return self.absent()
        if isinstance(value, self.cls):
            return value
        if inspect.isclass(value) and issubclass(value, self.cls):
            name = value.__name__
            raise InvalidArgument(
                self.describe(), f"the class {name}: call it, {name}(...)"
            )
        raise InvalidArgument

    def describe(self) -> str:
        text = f"a {self.cls.__name__} such as {self.code}"
        return text if self.absent is None else f"{text}, or None"

    def serialize(self, value: Any) -> Any:
        # When it saves a model, Keras gives an object an id the second time
        # that it sees it, and loads one object for one id.
        for _ in range(2):
            config = keras.saving.serialize_keras_object(value)
        if "shared_object_id" not in config and is_shared(value):
            config[_SHARED] = True
        return config

    def deserialize(self, config: Any) -> Any:
        if isinstance(config, self.cls):
            return config
        if isinstance(config, dict) and config.get(_SHARED):
            raise ValueError(
                f"several layers share one {config['class_name']}, but "
                "`clone_model` and `get_config` copy each layer by itself: "
                "save the model by `model.save` and load it, or give each "
                "layer an object of its own."
            )
        return keras.saving.deserialize_keras_object(config)


_SHARED = "is_shared"
"""Key of a configuration: whether several layers share the object."""


def is_shared(layer: Any) -> bool:
    """Whether several layers of functional models share what a layer knows."""
    return len(getattr(layer, "owners", ())) > 1 and bool(layer.variables)


class Activation(Argument[Callable[[Tensor], Tensor]]):
    """An activation of Keras: its name, its configuration or the function."""

    def convert(self, value: Any) -> Callable[[Tensor], Tensor]:
        return _resolve(value, keras.activations.get)

    def describe(self) -> str:
        return 'an activation of Keras such as "relu", or a function'

    def serialize(self, value: Any) -> Any:
        return keras.activations.serialize(value)


class Initializer(Argument[Any]):
    """An initializer of Keras, its name or its configuration."""

    def convert(self, value: Any) -> Any:
        if value is None:
            raise InvalidArgument
        return _resolve(value, keras.initializers.get)

    def describe(self) -> str:
        return 'an initializer of Keras such as "glorot_uniform"'

    def serialize(self, value: Any) -> Any:
        return keras.initializers.serialize(value)


class Regularizer(Argument[Any]):
    """The name or the configuration of a regularizer of Keras, or one."""

    def convert(self, value: Any) -> Any:
        if value is None:
            raise InvalidArgument
        return _resolve(value, keras.regularizers.get)

    def describe(self) -> str:
        return 'a regularizer of Keras such as "l2"'

    def serialize(self, value: Any) -> Any:
        return keras.regularizers.serialize(value)


class Constraint(Argument[Any]):
    """The name or the configuration of a constraint of Keras, or one."""

    def convert(self, value: Any) -> Any:
        if value is None:
            raise InvalidArgument
        return _resolve(value, keras.constraints.get)

    def describe(self) -> str:
        return 'a constraint of Keras such as "max_norm"'

    def serialize(self, value: Any) -> Any:
        return keras.constraints.serialize(value)


class Function(Argument[Callable[..., Any]]):
    """A function."""

    def convert(self, value: Any) -> Callable[..., Any]:
        if callable(value) and not _is_misplaced(value):
            return value
        raise InvalidArgument

    def describe(self) -> str:
        return "a function"


class Numbers(Argument[FloatArray]):
    """A number, an array, or a nested list of finite numbers.

    Args:
        shape: str. The expected shape, for the error message.
        axes: int, expected number of axes; `None`: any number.
        most: Number, largest absolute value allowed; `None`: no bound.
        **kwargs: Arguments of `Argument`.
    """

    def __init__(
        self,
        shape: str = "of any shape",
        *,
        axes: int | None = None,
        most: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.shape = shape
        self.axes = axes
        self.most = most

    def convert(self, value: Any) -> FloatArray:
        try:
            array = np.asarray(value)
        except (ValueError, TypeError):
            raise InvalidArgument from None  # Nested lists of unequal lengths.
        if array.dtype.kind not in "iuf":
            raise InvalidArgument
        if self.axes not in (None, array.ndim):
            raise InvalidArgument(got=f"shape {array.shape}")
        array = array.astype("float64")
        wrong = ~np.isfinite(array) | (np.abs(array) > (self.most or np.inf))
        if wrong.any():
            raise InvalidArgument(got=described(array[wrong][0].item()))
        return array

    def describe(self) -> str:
        size = "" if self.most is None else f" up to {self.most} in size"
        return f"finite numbers{size}, {self.shape}"


class Tuple(Argument[tuple[T, ...]]):
    """A tuple of values that another declaration accepts.

    Args:
        inner: `Argument`, the declaration of each value.
        empty: bool, whether there may be none.
        **kwargs: Arguments of `Argument`.
    """

    def __init__(
        self, inner: Argument[T], *, empty: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.inner = inner
        self.empty = empty

    def convert(self, value: Any) -> tuple[T, ...]:
        if not isinstance(value, tuple | list | range):
            raise InvalidArgument
        if not (value or self.empty):
            raise InvalidArgument
        checked = []
        for each in value:
            try:
                checked.append(self.inner.convert(each))
            except InvalidArgument as error:
                got = error.got or described(each)
                raise InvalidArgument(
                    self._describe(error.expected), got
                ) from None
        return tuple(checked)

    def describe(self) -> str:
        return self._describe("")

    def _describe(self, expected: str) -> str:
        count = "any number of" if self.empty else "one or more"
        what = f", {self.inner.what}" if self.inner.what else ""
        each = expected or self.inner.describe() + what
        return f"a tuple of {count} values, each {each}"


class OneOrMore(Argument[T | tuple[T, ...]]):
    """A value that another declaration admits, or a tuple of such values.

    Args:
        inner: `Argument`, the declaration of each value.
        **kwargs: Arguments of `Argument`.
    """

    def __init__(self, inner: Argument[T], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.inner = inner

    def convert(self, value: Any) -> T | tuple[T, ...]:
        if not isinstance(value, tuple | list):
            try:
                return self.inner.convert(value)
            except InvalidArgument as error:
                raise InvalidArgument(got=error.got) from None
        return Tuple(self.inner).convert(value)

    def describe(self) -> str:
        return f"{self.inner.describe()}, or a tuple of one or more"


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
            near = find_nearest(str(name), known)
            hint = f": did you mean {near}?" if near else "."
            raise ValueError(
                f"{owner} must not have the key {name!r}{hint} It may have "
                f"{', '.join(sorted(known))}."
            )


def explain_unknown(name: str, known: Collection[str], owner: str) -> str:
    """Returns the error message for an argument that there is not.

    Args:
        name: str. Name of the argument.
        known: Names of the arguments that there are.
        owner: str. Name of the class.
    """
    return (
        f"{owner} has no argument {name!r}.{_ask(name, known)} It takes "
        f"{', '.join(sorted(known)) or 'none'}."
    )


def find_nearest(name: str, known: Collection[str]) -> str:
    """Returns the known name that a wrong one may stand for, or `""`.

    >>> find_nearest("max_positions", ["max_position", "seed"])
    'max_position'
    >>> find_nearest("d_model", ["model_dim", "mode"])
    'model_dim'
    """
    # A long text is similar to no name, and slow to compare.
    text = name.lower()[:100]
    same = [each for each in SYNONYMS.get(text, ()) if each in known]
    by_letters = {each.lower(): each for each in known}
    near = difflib.get_close_matches(text, by_letters, n=1)
    return (same or [by_letters[each] for each in near] or [""])[0]


def _ask(name: str, known: Collection[str]) -> str:
    near = find_nearest(name, known)
    return f" Did you mean {near}?" if near else ""


class ByName(dict[str, T]):
    """A dict of public objects by name; an unknown name is explained.

    Args:
        kind: str. What the objects are, such as `"preset"`.
        objects: Dict of the objects.
    """

    def __init__(self, kind: str, objects: dict[str, T]) -> None:
        super().__init__(objects)
        self.kind = kind

    def __missing__(self, name: str) -> T:
        raise KeyError(
            f"there is no {self.kind} {described(name)}."
            f"{_ask(str(name), self)} The names are {', '.join(self)}."
        )


def described(value: Any) -> str:
    """Describes a value in at most 80 characters, for an error message."""
    if isinstance(value, keras.layers.Layer):
        return f"a {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def fits_float32(value: float) -> bool:
    """Whether a finite number keeps its size when rounded to float32."""
    return value == 0 or _SMALLEST_FLOAT <= abs(value) <= _LARGEST_FLOAT


def _resolve(value: Any, get: Callable[[Any], Any]) -> Any:
    if value is None or isinstance(value, str | dict) or callable(value):
        try:
            found = get(value)
        except (ValueError, TypeError):
            # Keras' error does not name the argument.
            raise InvalidArgument from None
        if not _is_misplaced(found):
            return found
    raise InvalidArgument


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


def _in_range(value: float, least: float | None, most: float | None) -> bool:
    return (least is None or value >= least) and (most is None or value <= most)


def _describe_bounds(
    kind: str,
    least: float | None,
    most: float | None,
    above: float | None = None,
    below: float | None = None,
) -> str:
    if least is not None and most is not None:
        return f"{kind} from {least} to {most}"
    bounds = {
        "of at least": least,
        "above": above,
        "at most": most,
        "below": below,
    }
    words = [
        f"{word} {bound}" for word, bound in bounds.items() if bound is not None
    ]
    return " ".join([kind, " and ".join(words)]).strip()
