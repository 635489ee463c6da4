"""Grids of one's own: files with the flags of their runs."""

import pathlib
from collections.abc import Iterable

from trainers.errors import ConfigError
from trainers.options.choices import check_choice, described
from trainers.options.option import options
from trainers.options.own_classes import find_value, split_name
from trainers.records.opened_run import registered
from trainers.sweeps.grids.grid import Grid, Run

TITLES = ("task", "dataset", "data")
"""Flags that name what a run is trained on."""


def read_grid(text):
    """Reads a grid of one's own.

    The file has `RUNS`, or another name that stands behind a colon: a list of
    dicts of flags, or a function without arguments that returns one. Each dict
    also has the trainer:

        RUNS = [
            {"trainer": "algorithmic", "encoding": encoding, "seed": seed}
            for encoding in ("RoPE", "ALiBi")
            for seed in range(3)
        ]

    Args:
        text: str. The value of `--grid`, such as `mine.py` or `mine.py:long`.

    Returns:
        A `Grid`.

    Raises:
        ConfigError: If the file has no such list, or a dict of it is no run.
    """
    file, name = split_name(text) if split_name(text)[0] else (text, "RUNS")
    found = find_value("--grid", f"{file}:{name}")
    try:
        listed = found() if callable(found) else found
        is_list = isinstance(listed, Iterable)
        is_list = is_list and not isinstance(listed, dict | str)
        listed = [*listed] if is_list else listed
    # Whatever the code of a user raises.
    except Exception as error:
        raise ConfigError(
            f"--grid: {name} of {file} failed: {type(error).__name__}: {error}."
        ) from error
    if not is_list:
        raise ConfigError(
            f"--grid: {name} of {file} must be a list of dicts of flags, or a "
            f"function that returns one; got {described(listed)}."
        )
    runs = tuple(
        _make_run(f"run {number} of {file}", flags)
        for number, flags in enumerate(listed)
    )
    if not runs:
        raise ConfigError(f"--grid: {name} of {file} has no runs.")
    return Grid(
        name=name_grid(text), title=text, size="", runs=runs, score="score"
    )


def name_grid(text):
    """Returns the name of a grid, which stands in the name of its directory.

    >>> name_grid("grids/mine.py"), name_grid("grids/mine.py:long")
    ('mine', 'mine-long')
    """
    file, name = split_name(text)
    stem = pathlib.Path(file or text).stem
    return f"{stem}-{name}" if file else stem


def _make_run(place, flags):
    """Makes the `Run` of a dict."""
    if not isinstance(flags, dict) or "trainer" not in flags:
        raise ConfigError(
            f"{place} must be a dict of flags that has the key `trainer`; got "
            f"{described(flags)}."
        )
    flags = dict(flags)
    trainer = flags.pop("trainer")
    check_choice(f"the trainer of {place}", str(trainer), registered())
    known = [*options(registered()[trainer].config)]
    known.remove("workdir")
    for name, value in flags.items():
        check_choice(f"a flag of {place}", str(name), known)
        if type(value) not in (str, int, float, bool):
            raise ConfigError(
                f"{name} of {place} must be a str, int, float or bool; got "
                f"{described(value)}."
            )
    if not flags.get("encoding"):
        raise ConfigError(f"{place} needs an encoding, such as RoPE or NoPE.")
    title = next((str(flags[n]) for n in TITLES if n in flags), trainer)
    return Run(
        trainer=trainer,
        flags=flags,
        row=title,
        column=str(flags["encoding"]),
    )
