"""Copies of encodings with their own weights."""

from typing import Any, TypeVar

from keras_lengen.layers.encodings.base import PositionalEncoding

E = TypeVar("E", bound=PositionalEncoding)


def copy_encoding(
    encoding: E, *, default_sampler: bool = False, **changes: Any
) -> E:
    """Makes a copy of an encoding that shares no layer with it.

    Args:
        encoding: `PositionalEncoding`.
        default_sampler: bool, whether the copy has the default sampler, which
            is right if something else samples the positions.
        **changes: Arguments in which the copy differs.
    """
    config = {**encoding.get_config(), **changes}
    if default_sampler:
        config.pop("sampler", None)
    return type(encoding).from_config(_forget_ids(config))


def _forget_ids(config: Any) -> Any:
    """Removes the ids by which Keras finds the layers of a model it loads."""
    if isinstance(config, dict):
        return {
            name: _forget_ids(value)
            for name, value in config.items()
            if name != "shared_object_id"
        }
    if isinstance(config, list | tuple):
        return type(config)(map(_forget_ids, config))
    return config
