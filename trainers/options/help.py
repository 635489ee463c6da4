"""Text of `--help`: flags, presets, and the names that flags take.

`--help=NAME` describes a flag, a preset or such a name, with its arguments.
"""

import ast
import inspect
import re
import shlex
import textwrap

from keras_lengen.checks.constructors import constructor_arguments
from keras_lengen.layers import MultiHeadAttention
from keras_lengen.layers.transformer import OF_BLOCK
from trainers.errors import ConfigError
from trainers.options.choices import described, suggest
from trainers.options.layers import FROM_FLAGS
from trainers.options.option import format_flag, options

WIDTH = 79
"""Largest number of columns of a line."""

_SECTIONS = (
    "Args:",
    "Attributes:",
    "Call arguments:",
    "Raises:",
    "Returns:",
    "Example:",
    ">>>",
)


def make_help(config_class, presets, name="", about=""):
    """Returns the text of `--help`, or of `--help=name`.

    Args:
        config_class: Class of the configuration, whose fields are flags.
        presets: Dict from the name of a preset to the fields it sets.
        name: str. A flag, a preset or a name that a flag takes; empty: all.
        about: str. What the program does, which begins the text of `--help`.

    Raises:
        ConfigError: If nothing has the name.
    """
    if not name:
        return _describe_all(config_class, presets, about)
    found = list(_describe(config_class, presets, name))
    if not found:
        hint = suggest(name, _list_names(config_class, presets))
        raise ConfigError(
            f"--help knows no flag, preset or other name {described(name)}."
            f"{hint} --help without a name lists all of them."
        )
    return "\n\n".join(found)


def _describe_all(config_class, presets, about):
    """Describes the program, its flags, their names, and the presets."""
    known = options(config_class)
    flags = [_format_flag(config_class, presets, flag) for flag in known]
    # The presets of a tool without fields are those of a trainer.
    has_presets = any(presets.values())
    title = "Flags, with their defaults"
    if has_presets:
        title += f", those of --preset={_find_preset(config_class)}"
    parts = [
        inspect.cleandoc(about),
        _fill(
            "--help=NAME describes a flag, a preset, or a name below with its "
            "arguments."
        ),
        "\n".join([f"{title}:", *flags]),
    ]
    parts += [
        f"Names for --{flag}:\n{_format_names(option.names)}"
        for flag, option in known.items()
        if option.names
    ]
    if has_presets:
        parts += [
            _format_preset(preset, fields) for preset, fields in presets.items()
        ]
    return "\n\n".join(filter(None, parts))


def _describe(config_class, presets, name):
    """Yields descriptions of everything with a name."""
    known = options(config_class)
    flag = name.removeprefix("--")
    if flag in known:
        yield _describe_flag(config_class, presets, flag)
    for flag, option in known.items():
        if name in option.names:
            yield _describe_name(flag, name, option)
    if name in presets:
        yield _format_preset(name, presets[name])


def _list_names(config_class, presets):
    known = options(config_class)
    names = [name for option in known.values() for name in option.names]
    return [*known, *names, *presets]


def _describe_flag(config_class, presets, name):
    """Describes a flag: its values, and its names if it takes names."""
    option = options(config_class)[name]
    parts = [_format_flag(config_class, presets, name)]
    bounds = option.describe_bounds()
    if bounds:
        parts.append(f"      The value must be {bounds}.")
    if option.names:
        parts += ["", "Names:", _format_names(option.names)]
    return "\n".join(parts)


def _format_flag(config_class, presets, name):
    """Describes a flag: its default, its text, and the values of presets."""
    option = options(config_class)[name]
    text = option.help
    if option.choices and not option.names:
        text += f" One of {', '.join(option.choices)}."
    if option.takes_file:
        text += " Or a file of your own, as path/grid.py."
    if option.base:
        text += (
            f" Or a subclass of {option.base.__name__} of your own, as "
            "my_project.layers:Name or path/file.py:Name."
        )
    # A preset leaves a flag that it does not set at the default of the class.
    values = {
        preset: fields.get(name, option.default)
        for preset, fields in presets.items()
    }
    default = values.get(_find_preset(config_class), option.default)
    of_presets = [
        f"--preset={preset}: {value}"
        for preset, value in values.items()
        if value != default
    ]
    if of_presets:
        text += f" With {'; '.join(of_presets)}."
    head = f"  {format_flag(name, default)}"
    if default is False:
        head = f"  --{name}"
    return f"{head}\n" + _fill(text, indent=6)


def _find_preset(config_class):
    """Returns the name of the default preset, or `None` without presets."""
    preset = options(config_class).get("preset")
    return preset and preset.default


def _format_names(names):
    """Describes every name in a line, or more if it does not fit."""
    column = max(map(len, names)) + 4
    return "\n".join(
        _fill(_summarize(named), indent=column, head=f"  {name}")
        for name, named in names.items()
    )


def _format_preset(preset, fields):
    if not fields:
        return f"--preset={preset} keeps the defaults."
    flags = " ".join(format_flag(*each) for each in fields.items())
    return f"--preset={preset} sets\n{_fill(flags, indent=2)}"


def _describe_name(flag, name, option):
    """Describes a name: its docstring, its arguments and an example."""
    named = option.names[name]
    cls = named if inspect.isclass(named) else type(named)
    parts = [f"{name}, for --{flag}", *_list_paragraphs(cls)]
    if option.registry:
        parts.append(_format_arguments(cls))
        example = _format_example(flag, name, cls)
    else:
        example = f"  --{flag}={name}"
    return "\n\n".join([*filter(None, parts), f"Example:\n{example}"])


def _summarize(named):
    return inspect.getdoc(named).partition("\n")[0]


def _list_paragraphs(cls):
    """Lists the paragraphs of a docstring that describe the class."""
    return [
        text
        for text in inspect.getdoc(cls).split("\n\n")
        if not text.startswith(_SECTIONS)
    ]


def _list_arguments(cls):
    """Returns the arguments that a call on the command line may have."""
    # The sampler has a flag of its own.
    taken = OF_BLOCK if _is_attention(cls) else ("sampler",)
    arguments = constructor_arguments(cls)
    return {n: each for n, each in arguments.items() if n not in taken}


def _is_attention(cls):
    return issubclass(cls, MultiHeadAttention)


def _find_flag(cls, name):
    """Finds the flags that set an argument that a call leaves out, or ""."""
    return "" if _is_attention(cls) else FROM_FLAGS.get(name, "")


def _format_arguments(cls):
    texts = _read_arguments(cls)
    lines = []
    for name, parameter in _list_arguments(cls).items():
        head = f"  {name}"
        if parameter.default is not parameter.empty:
            head += f"={_format_value(parameter.default)}"
        if _find_flag(cls, name):
            head += f" (if not given: from {_find_flag(cls, name)})"
        lines += [head, _fill(texts.get(name, ""), indent=6)]
    if not lines:
        return "It takes no arguments."
    return "\n".join(["Arguments, with their defaults:", *lines])


def _read_arguments(cls):
    """Returns the texts of arguments in the docstrings of a class, by name.

    A class with a fixed sampler takes the arguments of the sampler, too.
    """
    bases = [*cls.__mro__, *getattr(cls, "sampler_class", object).__mro__]
    texts = {}
    for base in bases:
        for paragraph in inspect.cleandoc(base.__doc__ or "").split("\n\n"):
            if not paragraph.startswith(("Args:", "Attributes:")):
                continue
            entries = re.split(r"\n    (?=[\w*]+: )", paragraph)[1:]
            for entry in entries:
                name, _, text = entry.partition(": ")
                texts.setdefault(name, text)
    return texts


def _format_example(flag, name, cls):
    """Returns flags to type, with the arguments of the docstring's example."""
    call = _find_call(cls)
    arguments = {
        keyword.arg: ast.unparse(keyword.value).replace("'", '"')
        for keyword in (call.keywords if call else ())
        if not _find_flag(cls, keyword.arg)
    }
    sampler = arguments.pop("sampler", None)
    known = _list_arguments(cls)
    arguments = {n: each for n, each in arguments.items() if n in known}
    if not arguments:
        arguments = _choose_argument(cls)
    # Two arguments fit into a line.
    text = ", ".join(
        f"{name}={value}" for name, value in list(arguments.items())[:2]
    )
    flags = {flag: f"{name}({text})" if text else name}
    if sampler:
        flags["sampler"] = sampler
    return "\n".join(
        f"  --{name}={shlex.quote(value)}" for name, value in flags.items()
    )


def _choose_argument(cls):
    """Returns an argument with a default that says what a value looks like."""
    for name, parameter in _list_arguments(cls).items():
        default = parameter.default
        plain = isinstance(default, int | float | str)
        if plain and not _find_flag(cls, name):
            return {name: _format_value(default)}
    return {}


def _find_call(cls):
    """Finds the first call of a class in the example of its docstring."""
    lines = re.findall(r"^(?:>>>|\.\.\.) (.*)", inspect.getdoc(cls), re.M)
    if not lines:
        return None
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.Call) and _get_name(node.func) == cls.__name__:
            return node
    return None


def _get_name(node):
    return node.id if isinstance(node, ast.Name) else None


def _format_value(value):
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _fill(text, *, indent=0, head=""):
    return textwrap.fill(
        " ".join(text.split()),
        WIDTH,
        initial_indent=head.ljust(indent),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
