"""Reads the flags of a command line. Imports neither Keras nor TensorFlow."""

import itertools
import os
import re

from absl import flags

from datasets.files import only_files
from trainers.errors import ConfigError
from trainers.options.choices import suggest
from trainers.options.option import check_text

_DEFINE = {
    str: flags.DEFINE_string,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    bool: flags.DEFINE_boolean,
}


def find_request(argv):
    """Returns the value of `--help` on a command line.

    Args:
        argv: List of str. The program and its arguments.

    Returns:
        A name; `""` without a name, `None` without `--help`.
    """
    for argument in argv[1:]:
        if argument == "--":
            break
        flag, _, name = argument.partition("=")
        if flag in ("--help", "-help", "-h", "--helpshort", "-?"):
            return name.strip()
    return None


def parse(kinds, argv):
    """Parses a command line.

    Args:
        kinds: Dict from the names of flags to their types: str, int, float or
            bool.
        argv: List of str. The program and its arguments.

    Returns:
        Dict of the flags that are given, and a list of the other arguments.

    Raises:
        ConfigError: For an unknown flag, or a value of another type.
    """
    # Absl's own flags, such as --log_dir, would have no effect.
    values = flags.FlagValues()
    for name, kind in kinds.items():
        # None: not given, so that a preset can tell its own defaults apart. A
        # flag that is given twice is a mistake.
        _DEFINE[kind](name, None, "", flag_values=values, allow_overwrite=False)
    _check_flagfiles(argv[1:])
    try:
        operands = values(argv)[1:]
    except flags.UnrecognizedFlagError as error:
        hint = suggest(error.flagname, kinds, "--")
        raise ConfigError(
            f"there is no flag --{error.flagname}.{hint} --help lists all "
            "flags."
        ) from None
    except flags.Error as error:
        found = re.match(r"flag --(\w+)=(.*): \('Non-boolean", str(error))
        if found:
            raise ConfigError(
                f"--{found[1]} is true or false, also without a value; got "
                f"{found[2]}."
            ) from None
        raise ConfigError(str(error)) from None
    given = {name: values[name].value for name in kinds}
    return {n: v for n, v in given.items() if v is not None}, operands


def check_operands(given, operands):
    """Raises `ConfigError` for a wrong number of arguments beside the flags.

    Args:
        given: List of str. The arguments.
        operands: str. Their name, as for `trainers.options.command.run`.
    """
    for text in given:
        check_text(operands or "an argument", text)
    if given and not operands:
        raise ConfigError(
            f"unexpected argument {given[0]!r}: flags start with --."
        )
    if operands and not given and not operands.startswith("["):
        raise ConfigError(f"{operands} is missing: see --help.")
    if len(given) > 1 and not operands.strip("[]").endswith("..."):
        raise ConfigError(f"expected one {operands}; got {' '.join(given)}.")


def _check_flagfiles(arguments, seen=()):
    """Raises `ConfigError` for a file of flags that is no text, or no file."""
    for argument, following in itertools.zip_longest(arguments, arguments[1:]):
        flag, given, path = argument.partition("=")
        path = os.path.expanduser(path if given else following or "")
        if flag not in ("--flagfile", "-flagfile") or path in ("", *seen):
            continue
        try:
            with open(path, opener=only_files) as file:
                lines = [line.strip() for line in file]
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise ConfigError(
                f"cannot read --flagfile={path}: {reason}."
            ) from None
        _check_flagfiles(lines, (*seen, path))


def find_operand(argv, booleans):
    """Returns the first operand of a command line, or `None`.

    Args:
        argv: List of str. The program and its arguments; a flag without `=`
            takes the next argument as its value.
        booleans: Set of str. Names of flags that take no value.
    """
    is_value = False
    for index, argument in enumerate(argv[1:], 1):
        if argument == "--":
            return next(iter(argv[index + 1 :]), None)
        is_flag = argument.startswith("-")
        if not is_flag and not is_value:
            return argument
        name = argument.lstrip("-")
        is_boolean = {name, name.removeprefix("no")} & booleans
        is_value = is_flag and "=" not in argument and not is_boolean
    return None
