"""Constructors that follow from the declarations in a class body.

A class declares its arguments and gets a constructor, checks, a configuration
and the signature that `help` and type checkers show:

>>> import keras
>>> from keras_lengen.checks.arguments import Integer
>>> class Window(WithArguments, keras.layers.Layer):
...     width: int = argument(Integer(most=9, example=3), default=2)
>>> Window(width=4).width
4
>>> Window(width=10)
Traceback (most recent call last):
...
ValueError: width must be an integer from 1 to 9; got 10.
"""

import copy
import inspect
import types
import typing
from typing import Any, Literal, Self, dataclass_transform

import keras

from keras_lengen.checks.arguments import (
    Argument,
    Boolean,
    Choice,
    explain_unknown,
)

_REQUIRED = inspect.Parameter.empty


def argument(
    declaration: Argument[Any] | None = None,
    *,
    default: Any = _REQUIRED,
    kw_only: bool = True,
    alias: str = "",
) -> Any:
    """Declares an argument of the constructor, in the body of a class.

    The annotation of the attribute is the type of the argument, for type
    checkers.

    Args:
        declaration: `Argument`, which says what values are valid; `None`: that
            of the base class, or what follows from an annotation as `bool` or
            `Literal`.
        default: Default value; without one, the argument is required.
        kw_only: bool, whether the argument must be given by its name.
        alias: str. Name of the argument, if Keras uses the attribute of that
            name for something else.
    """
    return _Declaration(declaration, default, kw_only, alias)


class _Declaration:
    """An argument in a class body, before its name is known."""

    def __init__(
        self,
        declaration: Argument[Any] | None,
        default: Any,
        kw_only: bool,
        alias: str,
    ) -> None:
        self.declaration = declaration
        self.default = default
        self.kw_only = kw_only
        self.alias = alias

    def __set_name__(self, owner: type, name: str) -> None:
        annotation = inspect.get_annotations(owner).get(name, Any)
        declared = self.declaration or getattr(super(owner, owner), name, None)
        if not isinstance(declared, Argument):
            if isinstance(annotation, str):
                annotation = inspect.get_annotations(owner, eval_str=True)[name]
            declared = _read_type(annotation)
        # A declaration may serve several arguments.
        declared = copy.copy(declared)
        declared.parameter = inspect.Parameter(
            self.alias or name,
            inspect.Parameter.KEYWORD_ONLY
            if self.kw_only
            else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=self.default,
            annotation=_find_given_type(annotation),
        )
        declared.__set_name__(owner, name)
        setattr(owner, name, declared)


def _read_type(annotation: Any) -> Argument[Any]:
    """Makes the declaration of an argument from its type."""
    if annotation is bool:
        return Boolean()
    return Choice(*_list_choices(annotation))


def _list_choices(annotation: Any) -> list[Any]:
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return list(parts)
    if origin in (typing.Union, types.UnionType):
        return [each for part in parts for each in _list_choices(part)]
    if annotation is bool:
        return [True, False]
    if annotation is types.NoneType:
        return [None]
    raise TypeError(f"an argument of type {annotation} needs a declaration.")


def _find_given_type(annotation: Any) -> Any:
    """Finds the type of what may be given for an attribute.

    An attribute that is annotated as a declaration, such as `OrDefault[int]`,
    accepts what `__set__` of the declaration accepts.
    """
    declaration = typing.get_origin(annotation) or annotation
    if not (inspect.isclass(declaration) and issubclass(declaration, Argument)):
        return annotation
    given = inspect.get_annotations(declaration.__set__)["value"]
    parts = typing.get_args(annotation)
    return given[parts] if parts else given


class _Signature:
    """The signature of a class, which its instances do not have."""

    def __get__(self, instance: Any, owner: type) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        known = constructor_arguments(owner).values()
        others = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)
        return inspect.Signature([*known, others])


@dataclass_transform(kw_only_default=True, field_specifiers=(argument,))
class WithArguments:
    """Mixin of layers and models whose constructor arguments are declared.

    The constructor checks and assigns the arguments that are declared by
    `argument`, those of base classes first, and calls `__post_init__`; Keras
    gets the others. `get_config` and `from_config` include all declared
    arguments. A class may also have a constructor of its own, which assigns
    arguments that it declares without `argument`, as in
    `width = Integer(most=9)`.
    """

    __signature__ = _Signature()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        owner, known = type(self), constructor_arguments(type(self))
        for name in kwargs:
            if name not in known and name not in _OF_KERAS:
                raise ValueError(explain_unknown(name, known, owner.__name__))
        declared = {
            name: each.parameter
            for name, each in self.arguments().items()
            if each.parameter is not None
        }
        signature = inspect.Signature(
            [declared[name] for name in known if name in declared]
        )
        given = {name: kwargs.pop(name) for name in declared if name in kwargs}
        try:
            bound = signature.bind(*args, **given)
        except TypeError as error:
            raise TypeError(f"{owner.__name__}: {error}") from None
        bound.apply_defaults()
        # Autocasting would round float positions to the compute dtype.
        super().__init__(autocast=False, **kwargs)  # type: ignore[call-arg]
        self.assign(bound.arguments)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Completes the constructor, when all arguments are assigned."""

    def __setattr__(self, name: str, value: Any) -> None:
        # PyTorch stores layers without asking the declaration.
        declaration = getattr(type(self), name, None)
        if isinstance(declaration, Argument) and isinstance(
            value, keras.layers.Layer
        ):
            declaration.check(declaration.keyword, value)
        super().__setattr__(name, value)

    @classmethod
    def arguments(cls) -> dict[str, Argument[Any]]:
        """Returns the declarations of all arguments, by name."""
        return {
            value.keyword: value
            for base in reversed(cls.__mro__)
            for value in vars(base).values()
            if isinstance(value, Argument)
        }

    def assign(self, values: dict[str, Any]) -> None:
        """Assigns arguments, in the order of their declarations.

        A subclass may replace `None` by a default that depends on other
        arguments.

        Args:
            values: Dict of values by name.

        Raises:
            ValueError: If a value is invalid.
        """
        for name, declared in self.arguments().items():
            if name in values:
                setattr(self, declared.name, values[name])

    def get_config(self) -> dict[str, Any]:
        config: dict[str, Any] = {}
        layers: dict[int, str] = {}
        for name, declared in self.arguments().items():
            value = getattr(self, declared.name)
            if id(value) in layers:
                config[name] = {_SAME: layers[id(value)]}
                continue
            config[name] = declared.serialize(value)
            if isinstance(value, keras.layers.Layer):
                layers[id(value)] = name
        return {**super().get_config(), **config}  # type: ignore[misc]

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        declared = cls.arguments()
        same = {
            name: value[_SAME]
            for name, value in config.items()
            if isinstance(value, dict) and _SAME in value
        }
        values = {
            name: declared[name].deserialize(value)
            if name in declared
            else value
            for name, value in config.items()
            if name not in same
        }
        return cls(
            **values, **{name: values[other] for name, other in same.items()}
        )


_SAME = "same_as_argument"
"""Key of a configuration: the argument that is the same layer."""

_OF_KERAS = {
    *inspect.signature(keras.layers.Layer.__init__).parameters,
    *("input_dim", "input_shape"),
}


def constructor_arguments(cls: type) -> dict[str, inspect.Parameter]:
    """Lists the constructor arguments that a class adds to those of Keras.

    Args:
        cls: Class of this library.

    Returns:
        Dict from argument names to `inspect.Parameter`, in the order of a
        signature: required arguments first, and the arguments of the class
        itself before those of its bases.
    """
    found: dict[str, inspect.Parameter] = {}
    declared = cls.arguments() if issubclass(cls, WithArguments) else {}
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] == "keras":
            break
        for each in vars(base).values():
            # A mixin may take an argument back.
            if isinstance(each, Argument) and each.keyword in declared:
                parameter = declared[each.keyword].parameter
                if parameter is not None:
                    found.setdefault(parameter.name, parameter)
        for parameter in _list_taken(base):
            found.setdefault(parameter.name, parameter)
    in_order = sorted(
        found.values(),
        key=lambda each: (each.kind, each.default is not _REQUIRED),
    )
    return {each.name: each for each in in_order}


def _list_taken(cls: type) -> list[inspect.Parameter]:
    """Lists the arguments of the constructor that a class itself defines."""
    if "__init__" not in vars(cls) or cls is object:
        return []
    _, *taken = inspect.signature(vars(cls)["__init__"]).parameters.values()
    variadic = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    return [each for each in taken if each.kind not in variadic]
