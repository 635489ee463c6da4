"""Calls of classes in the value of a flag, as `RoPE(rotary_fraction=0.25)`."""

import ast
import re
import warnings

from keras_lengen.checks.arguments import (
    explain_unknown,
)
from keras_lengen.checks.constructors import constructor_arguments
from trainers.errors import ConfigError, as_config_errors
from trainers.options.choices import check_choice, described
from trainers.options.own_classes import find_class, split_name

MAX_CHARACTERS = 1000
"""Largest number of characters of a call."""

_NESTED = ("row", "column", "encoding")


def parse_call(flag, text, registry, base=None):
    """Returns class and arguments of `Name` or `Name(argument=value, ...)`.

    Values are literals, but `row`, `column` and `encoding` are names or calls
    themselves, as in
    `GridPositions(width=5, row=RandomizedPositions(max_position=9))`. All of
    their arguments must be given: the other flags count tokens.

    Args:
        flag: str. Name of the flag, for messages.
        text: str. Value of the flag.
        registry: Dict of classes by name.
        base: The class that classes of one's own are subclasses of, which are
            named with their module, as `own_classes` says; `None`: there are
            none.

    Raises:
        ConfigError: If the text has another form, or for an unknown name.
    """
    module, call = split_name(text) if base else ("", text)
    try:
        tree = _parse(call)
        if module:
            name = re.match(r"\s*(\w+)", call)[1]
            own = find_class(flag, module, name, base)
            registry = {**registry, name: own}
        return _read(flag, tree, registry)
    # Deeply nested expressions exhaust the parser.
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
        raise ConfigError(
            f"{flag} takes a name or a call with literal keyword arguments, "
            f"each once, as {_make_example(registry)}; got {described(text)}."
        ) from None


def construct(kind, arguments):
    """Calls a class with arguments from a flag.

    Raises:
        ConfigError: If the class does not accept the arguments.
    """
    accepted = constructor_arguments(kind)
    # A sampler has a flag of its own; the class says whether it takes one.
    known = accepted.keys() - {"sampler"}
    unknown = arguments.keys() - known - {"sampler"}
    if unknown:
        raise ConfigError(explain_unknown(min(unknown), known, kind.__name__))
    missing = [
        name
        for name, parameter in accepted.items()
        if parameter.default is parameter.empty and name not in arguments
    ]
    if missing:
        wanted = ", ".join(f"{name}=..." for name in missing)
        raise ConfigError(
            f"{kind.__name__} needs {' and '.join(map(repr, missing))}: write "
            f"{kind.__name__}({wanted})."
        )
    with as_config_errors(TypeError, ValueError):
        return kind(**arguments)


def _parse(text):
    text = text.strip()
    simple = re.fullmatch(r"\w+\s*(\(.*\))?", text, re.ASCII | re.DOTALL)
    if len(text) > MAX_CHARACTERS or not simple:
        raise ValueError
    with warnings.catch_warnings():
        # Python warns of escapes in strings that it does not know.
        warnings.simplefilter("ignore")
        return ast.parse(text, mode="eval").body


def _read(flag, tree, registry):
    call = tree if isinstance(tree, ast.Call) else ast.Call(tree, [], [])
    if call.args or not isinstance(call.func, ast.Name):
        raise ValueError
    check_choice(flag, call.func.id, registry)
    kind = registry[call.func.id]
    names = [keyword.arg for keyword in call.keywords]
    if None in names or len(set(names)) < len(names):
        raise ValueError
    # An encoding of rows has none of rows itself.
    parts = {name: cls for name, cls in registry.items() if cls is not kind}
    return kind, {
        keyword.arg: _read_value(flag, keyword, parts)
        for keyword in call.keywords
    }


def _read_value(flag, keyword, parts):
    if keyword.arg == "sampler":
        raise ConfigError(f"{flag} takes no sampler: give it by --sampler.")
    if keyword.arg in _NESTED:
        return construct(*_read(flag, keyword.value, parts))
    return ast.literal_eval(keyword.value)


def _make_example(registry):
    if not registry:
        return "my_project.layers:MyClass(argument=1)"
    for name, kind in registry.items():
        for argument, parameter in constructor_arguments(kind).items():
            if isinstance(parameter.default, int | float):
                return f"{name}({argument}={parameter.default!r})"
    return next(iter(registry))
