"""Copies of encodings with their own weights."""

from typing import Any, TypeVar

from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.layers.sublayer_policies import forget_ids

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
    return type(encoding).from_config(forget_ids(config))
