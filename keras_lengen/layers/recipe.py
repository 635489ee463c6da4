"""Recipes of layers, from which blocks and models make their parts."""

import inspect
from typing import Any, Self

import keras

from keras_lengen.checks.arguments import (
    Argument,
    InvalidArgument,
    explain_unknown,
)
from keras_lengen.checks.constructors import constructor_arguments
from keras_lengen.layers.initializers import copy_initializer


@keras.saving.register_keras_serializable(package="keras_lengen")
class Recipe:
    """A class of layers with arguments, of which each block makes a layer.

    A block gives the layer its own sizes, and its options, such as
    `kernel_initializer`, unless the recipe has them. Two recipes of the same
    class and arguments are equal.

    Args:
        layer: Class of the layers, registered by
            `keras.saving.register_keras_serializable`.
        **arguments: Arguments of its constructor.

    Raises:
        ValueError: If the class has no such argument, or it has another range.

    Example:

    >>> from keras_lengen.layers import MultiHeadAttention, Recipe
    >>> from keras_lengen.models import TransformerDecoder
    >>> windowed = Recipe(MultiHeadAttention, sliding_window=16, use_sinks=True)
    >>> model = TransformerDecoder(
    ...     vocabulary_size=256, num_layers=2, num_heads=4, model_dim=32,
    ...     attention=windowed)
    >>> windowed.replace(sliding_window=8)
    Recipe(MultiHeadAttention, sliding_window=8, use_sinks=True)
    """

    def __init__(
        self, layer: type[keras.layers.Layer], /, **arguments: Any
    ) -> None:
        known = constructor_arguments(layer)
        for name in arguments:
            if name not in known:
                raise ValueError(explain_unknown(name, known, layer.__name__))
        declared = _find_declared(layer)
        self.layer: Any = layer
        self.arguments = {
            name: declared[name].check(name, value)
            if name in declared
            else value
            for name, value in arguments.items()
        }

    def replace(self, **changes: Any) -> Self:
        """Makes a recipe with other values of some arguments.

        Args:
            **changes: Arguments of the constructor of the layer.
        """
        return type(self)(self.layer, **self.arguments | changes)

    def make(self, **given: Any) -> Any:
        """Makes a layer.

        Args:
            **given: Values of the arguments that the recipe does not have.
        """
        own = {
            name: copy_initializer(value)
            for name, value in self.arguments.items()
        }
        return self.layer(**given | own)

    def get_config(self) -> dict[str, Any]:
        declared = _find_declared(self.layer)
        return {
            "layer": keras.saving.get_registered_name(self.layer),
            "arguments": {
                name: declared[name].serialize(value)
                if name in declared
                else keras.saving.serialize_keras_object(value)
                for name, value in self.arguments.items()
            },
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        layer = keras.saving.get_registered_object(config["layer"])
        if layer is None:
            raise ValueError(
                f"there is no registered class {config['layer']!r}: decorate "
                "it with keras.saving.register_keras_serializable, and import "
                "it before loading."
            )
        declared = _find_declared(layer)
        return cls(
            layer,
            **{
                name: declared[name].deserialize(value)
                if name in declared
                else keras.saving.deserialize_keras_object(value)
                for name, value in config["arguments"].items()
            },
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Recipe):
            return NotImplemented
        same = self.layer is other.layer
        return same and self.get_config() == other.get_config()

    def __hash__(self) -> int:
        return hash(self.layer)

    def __repr__(self) -> str:
        given = (f", {name}={each!r}" for name, each in self.arguments.items())
        return f"Recipe({self.layer.__name__}{''.join(given)})"


def _find_declared(layer: type) -> dict[str, Argument[Any]]:
    """Finds the declarations of the arguments of a layer, if it has some."""
    return layer.arguments() if hasattr(layer, "arguments") else {}


class RecipeArgument(Argument[Recipe]):
    """A recipe of layers of a class, the class itself or a subclass of it.

    Args:
        cls: The class, which `None` stands for.
        given: Names of the arguments that the block sets.
        **kwargs: Arguments of `Argument`.
    """

    def __init__(
        self,
        cls: type[keras.layers.Layer],
        *,
        given: tuple[str, ...],
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.cls = cls
        self.given = given

    def convert(self, value: Any) -> Recipe:
        if value is None:
            return Recipe(self.cls)
        if isinstance(value, self.cls):
            name = type(value).__name__
            raise InvalidArgument(
                got=f"an object: pass the class, {name}, or a Recipe"
            )
        if isinstance(value, str):
            raise InvalidArgument(
                got=f"{value!r}: pass the class, not its name"
            )
        if inspect.isclass(value) and issubclass(value, self.cls):
            return Recipe(value)
        if not isinstance(value, Recipe):
            raise InvalidArgument
        if not issubclass(value.layer, self.cls):
            raise InvalidArgument(got=f"a recipe of {value.layer.__name__}")
        for name in self.given:
            if name in value.arguments:
                raise InvalidArgument(
                    sentence=f" must not have {name}, which is an argument of "
                    "the block or model: leave it out of the recipe."
                )
        return value

    def __set__(self, instance: Any, value: Recipe | type[Any] | None) -> None:
        super().__set__(instance, value)

    def describe(self) -> str:
        name = self.cls.__name__
        return f"{name} or a subclass of it, or a Recipe of one"

    def serialize(self, value: Any) -> Any:
        return value.get_config()

    def deserialize(self, config: Any) -> Any:
        return (
            Recipe.from_config(config) if isinstance(config, dict) else config
        )
