"""What the checks of all kinds of layers share."""

import json
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import keras

from keras_lengen.checks.constructors import constructor_arguments
from keras_lengen.layers.random_layer import find_seed_generators

Check = Callable[[Any], None]
"""Raises an `AssertionError` that names the property which a layer lacks."""


def require(layer: Any, condition: Any, promise: str) -> None:
    """Raises an `AssertionError` with the promise unless it is kept."""
    if not condition:
        raise AssertionError(f"{type(layer).__name__} {promise}.")


def require_truth(layer: Any, attribute: str, found: bool, what: str) -> None:
    """Requires that an attribute says whether a layer does something.

    Args:
        layer: The layer.
        attribute: str, name of a class attribute.
        found: bool, whether the layer does it.
        what: str, what it may do, such as `"draws positions"`.
    """
    require(
        layer,
        getattr(layer, attribute) == found,
        f"{what}: {found}, and must say so: `{attribute} = {found}`",
    )


def check_config(layer: Any) -> None:
    """Checks that a layer can be made again from its configuration."""
    copy, config = rebuild(layer), layer.get_config()
    require(
        layer,
        type(copy) is type(layer)
        and _through_json(copy.get_config()) == _through_json(config),
        "must be made again from its configuration: return all arguments from "
        "`get_config`",
    )


def check_arguments(layer: Any) -> None:
    """Checks that a layer keeps its arguments.

    Every declared argument gets its examples, where the others allow them.
    """
    config = layer.get_config()
    for name in constructor_arguments(type(layer)):
        promise = f"must return the argument {name} from `get_config`: declare "
        require(layer, name in config, promise + "it as a class attribute")
    for name, declaration in type(layer).arguments().items():
        for value in filter(declaration.admits, declaration.examples):
            wanted = declaration.serialize(declaration.convert(value))
            try:
                changed = type(layer).from_config({**config, name: wanted})
            except ValueError:  # It does not go with the other arguments.
                continue
            kept = getattr(changed, declaration.name or name)
            configs = (declaration.serialize(kept), changed.get_config()[name])
            require(
                layer,
                all(_through_json(wanted) == _through_json(c) for c in configs),
                f"must keep the argument {name} as it was given",
            )


def rebuild(layer: Any) -> Any:
    """Makes a layer again from its configuration, without its weights."""
    try:
        config = keras.saving.serialize_keras_object(layer)
        return keras.saving.deserialize_keras_object(_through_json(config))
    except (TypeError, ValueError) as error:
        raise AssertionError(
            f"{type(layer).__name__} cannot be made from its configuration: "
            "decorate it with keras.saving.register_keras_serializable, and "
            "return the arguments of its constructor from `get_config` "
            f"({error})"
        ) from error


def save_and_load(model: Any) -> Any:
    """Saves a model, and loads it from the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.keras")
        model.save(path)
        return keras.saving.load_model(path)


def restart(layer: Any) -> None:
    """Makes a layer draw what it draws first."""
    for generator in find_seed_generators(layer):
        generator.state.assign([3, 4])


def _through_json(config: Any) -> Any:
    return json.loads(json.dumps(config))
