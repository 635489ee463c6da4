"""What the checks of all kinds of layers share."""

from collections.abc import Callable
from typing import Any

import keras

Check = Callable[[Any], None]
"""Raises an `AssertionError` that names the property which a layer lacks."""


def require(condition: Any, layer: Any, promise: str) -> None:
    """Raises `AssertionError` with the promise unless the condition holds."""
    if not condition:
        raise AssertionError(f"{type(layer).__name__} {promise}.")


def check_config(layer: Any) -> None:
    """Checks that a layer can be made again from its configuration."""
    copy = rebuild(layer)
    require(
        type(copy) is type(layer) and copy.get_config() == layer.get_config(),
        layer,
        "must be made again from its configuration: return all arguments from "
        "`get_config`",
    )


def rebuild(layer: Any) -> Any:
    """Makes a layer again from its configuration, without its weights."""
    try:
        config = keras.saving.serialize_keras_object(layer)
        return keras.saving.deserialize_keras_object(config)
    except (TypeError, ValueError) as error:
        raise AssertionError(
            f"{type(layer).__name__} cannot be made from its configuration: "
            "decorate it with keras.saving.register_keras_serializable, and "
            "return the arguments of its constructor from `get_config` "
            f"({error})"
        ) from error
