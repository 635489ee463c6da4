"""Further flags of all runs of a sweep."""

import typing

from trainers.errors import ConfigError
from trainers.options.choices import check_choice
from trainers.options.option import options
from trainers.records.opened_run import registered

FIXED = ("workdir", "initialize_from")
"""Flags that the sweep sets itself."""


def with_overrides(runs, given):
    """Returns the runs with further flags.

    Args:
        runs: Iterable of `Run`.
        given: Dict from names to values, all str.

    Returns:
        Tuple of `Run` with the flags that change results; a dict of the other
        flags.

    Raises:
        ConfigError: If a trainer of the runs does not have a flag, or it
            cannot have the value.
    """
    runs = tuple(runs)
    arguments, by_trainer = {}, {}
    for trainer in {run.trainer for run in runs}:
        config_class = registered()[trainer].config
        by_trainer[trainer] = {}
        for name, text in given.items():
            value = _read_value(config_class, name, text)
            known = options(config_class)[name]
            if known.changes_result:
                by_trainer[trainer][name] = value
            else:
                arguments[name] = value
    return tuple(
        run.with_flags(by_trainer[run.trainer]) for run in runs
    ), arguments


def _read_value(config_class, name, text):
    names = [known for known in options(config_class) if known not in FIXED]
    check_choice("a name in --flags", name, names)
    kind = typing.get_type_hints(config_class)[name]
    if kind is bool:
        check_choice(f"--flags: {name}", text, ("true", "false"))
        return text == "true"
    try:
        return kind(text)
    except ValueError:
        raise ConfigError(
            f"--flags: {name} takes {kind.__name__}; got {text!r}."
        ) from None
