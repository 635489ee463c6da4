"""Layers, schedules and curricula that a flag names or calls."""

import ast
import dataclasses
import math

from keras_lengen.arguments import constructor_arguments
from keras_lengen.layers import (
    ATTENTIONS,
    ENCODINGS,
    SAMPLERS,
    AxialEncoding,
    GridPositions,
)
from trainers.errors import ConfigError
from trainers.options.fields import check_choice

# With the encoding and the sampler that are made of two others.
ALL_ENCODINGS = {**ENCODINGS, "AxialEncoding": AxialEncoding}
ALL_SAMPLERS = {**SAMPLERS, "GridPositions": GridPositions}
_ROWS_AND_COLUMNS = {"--encoding": ENCODINGS, "--sampler": SAMPLERS}


def parse_call(flag, text, registry):
    """Returns class and arguments of `Name` or `Name(argument=value, ...)`.

    Values are literals, but `row` and `column` are names or calls themselves,
    as in `GridPositions(width=5, row=RandomizedPositions(max_position=9))`.
    All of their arguments must be given: the other flags count tokens.
    """
    try:
        return _read(flag, ast.parse(text.strip(), mode="eval").body, registry)
    except (SyntaxError, TypeError, ValueError):
        raise ConfigError(
            f"{flag} takes a name or a call with literal keyword arguments, "
            f"as RoPE(rotary_fraction=0.25); got {text!r}."
        ) from None


def _read(flag, tree, registry):
    call = tree if isinstance(tree, ast.Call) else ast.Call(tree, [], [])
    if call.args or not isinstance(call.func, ast.Name):
        raise ValueError
    check_choice(flag, call.func.id, tuple(registry))
    return registry[call.func.id], {
        keyword.arg: _read_value(flag, keyword) for keyword in call.keywords
    }


def _read_value(flag, keyword):
    if keyword.arg == "sampler":
        raise ConfigError(f"{flag} takes no sampler: give it by --sampler.")
    if keyword.arg in ("row", "column") and flag in _ROWS_AND_COLUMNS:
        registry = _ROWS_AND_COLUMNS[flag]
        return _construct(*_read(flag, keyword.value, registry))
    return ast.literal_eval(keyword.value)


def build(config, flag, registry):
    """Makes the object that a flag names or calls.

    Arguments that the call leaves out come from other flags where these know
    them: `max_position`, `train_length`, `original_length` and `max_shift`.
    """
    return _make(config, *parse_call(flag, _value(config, flag), registry))


def build_encoding(config):
    """Makes the encoding that the flags describe, with its sampler.

    Raises:
        ConfigError: If the encoding or the sampler does not exist, or the
            encoding does not accept the sampler.
    """
    flag = "--encoding"
    made, arguments = parse_call(flag, _value(config, flag), ALL_ENCODINGS)
    if config.sampler:
        arguments["sampler"] = build(config, "--sampler", ALL_SAMPLERS)
    return _make(config, made, arguments)


def model_arguments(config):
    """Returns the arguments of a model that flags of all trainers set."""
    return {
        "num_layers": config.num_layers,
        "num_heads": config.num_heads,
        "model_dim": config.model_dim,
        "dropout": config.dropout,
        "encoding": build_encoding(config),
        "attention": ATTENTIONS[config.attention],
        "draw": config.draw,
        "dtype": config.precision,
    }


def with_max_position(config):
    """Returns the configuration with positions for the longest sequence.

    Raises:
        ConfigError: If there are positions for shorter ones only.
    """
    tokens = config.total_length(max(config.evaluated_lengths))
    if not config.max_position:
        # A quarter more, so that positions stay random at the longest length.
        reach = 2 ** math.ceil(math.log2(1.25 * tokens))
        config = dataclasses.replace(config, max_position=reach)
    check_length(build_encoding(config), tokens)
    return config


def check_length(encoding, tokens):
    """Raises `ConfigError` unless an encoding has positions for all tokens."""
    try:
        encoding.check_length(tokens)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _value(config, flag):
    return getattr(config, flag.removeprefix("--"))


def _make(config, made, arguments):
    """Makes a layer; arguments that are not given come from other flags."""
    known = _known_arguments(config)
    missing = (constructor_arguments(made).keys() & known) - set(arguments)
    return _construct(made, {**{n: known[n] for n in missing}, **arguments})


def _construct(made, arguments):
    accepted = constructor_arguments(made)
    unknown = arguments.keys() - accepted.keys()
    if unknown:
        raise ConfigError(
            f"{made.__name__} has no argument {sorted(unknown)[0]!r}; it "
            f"takes {', '.join(sorted(accepted)) or 'none'}."
        )
    try:
        return made(**arguments)
    except (TypeError, ValueError) as error:
        raise ConfigError(str(error)) from None


def _known_arguments(config):
    """Returns arguments of encodings and samplers that other flags set."""
    trained = config.total_length(max(config.trained_lengths))
    return {
        "max_position": config.max_position,
        "train_length": trained,
        "original_length": trained,
        "max_shift": max(config.max_position - trained, 1),
    }
