"""Python code that makes a layer again."""

import collections

from keras_lengen.checks.constructors import constructor_arguments
from keras_lengen.layers import (
    OrdinalPositions,
    PositionalEncoding,
    PositionSampler,
)
from trainers.options.layers import model_arguments


def write_call(layer):
    """Returns the code that makes a layer, without default arguments.

    >>> from keras_lengen.layers import RandomizedRoPE
    >>> write_call(RandomizedRoPE(max_position=64))
    'RandomizedRoPE(max_position=64)'
    """
    given = (
        f"{name}={write_call(value) if _is_layer(value) else repr(value)}"
        for name, value in _list_arguments(layer)
    )
    return f"{type(layer).__name__}({', '.join(given)})"


def _list_arguments(layer):
    """Yields the arguments of a layer that are not its defaults."""
    config = layer.get_config()
    for name, parameter in constructor_arguments(type(layer)).items():
        value = getattr(layer, name, config.get(name))
        is_plain = isinstance(value, str | int | float | tuple)
        if (
            name in config
            and value != parameter.default
            and (is_plain or _is_layer(value))
            # The sampler of layers without one.
            and not isinstance(value, OrdinalPositions)
        ):
            yield name, value


def _is_layer(value):
    return isinstance(value, PositionalEncoding | PositionSampler)


def _list_classes(layer):
    """Yields the class of a layer and those of its arguments."""
    yield type(layer)
    for _, value in _list_arguments(layer):
        if _is_layer(value):
            yield from _list_classes(value)


def write_example(config):
    """Returns the code of attention with the encoding of a configuration.

    Args:
        config: Configuration of a run, with its `max_position`.
    """
    arguments = model_arguments(config)
    encoding, attention = arguments["encoding"], arguments["attention"]
    names = collections.defaultdict(set)
    for cls in (attention.layer, *_list_classes(encoding)):
        names[_find_module(cls)].add(cls.__name__)
    width = config.model_dim // config.num_heads
    options = {
        "num_heads": config.num_heads,
        "key_dim": width,
        **attention.arguments,
    }
    written = [f"{name}={value!r}" for name, value in options.items()]
    return "\n".join(
        [
            *(
                f"from {module} import {', '.join(sorted(imported))}"
                for module, imported in sorted(names.items())
            ),
            "",
            f"encoding = {write_call(encoding)}",
            f"attention = {attention.layer.__name__}(",
            f"    {', '.join([*written, 'encoding=encoding'])}",
            ")",
        ]
    )


def _find_module(cls):
    is_ours = cls.__module__.startswith("keras_lengen.")
    return "keras_lengen.layers" if is_ours else cls.__module__
