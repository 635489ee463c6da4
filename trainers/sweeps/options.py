"""Options of `python -m trainers.sweep`."""

import dataclasses
import re

from trainers.errors import ConfigError
from trainers.options.option import check_options, check_unused, option
from trainers.options.own_classes import names_file
from trainers.sweeps.grids import GRIDS, SIZES


def check_size(config):
    """Raises `ConfigError` for a size of a grid that has none."""
    if names_file(config.grid):
        check_unused(config, ["size"], "with a grid of your own")


@dataclasses.dataclass(frozen=True)
class SweepConfig:
    """Flags of this command."""

    grid: str = option("", "Table or figure.", choices=GRIDS, takes_file=True)
    size: str = option(
        "small",
        "paper: as published; small: with smaller models, fewer steps and "
        "seeds, and data that every machine has.",
        choices=SIZES,
    )
    root: str = option(
        "",
        "Root directory (empty: runs/sweeps/GRID-SIZE).",
        is_path=True,
    )
    engine: str = option(
        "local",
        "Where to train: in processes of this machine, or on a Ray cluster.",
        choices=("local", "ray"),
    )
    jobs: int = option(
        0,
        "Number of runs at a time on this machine; 0: one for each core.",
        least=0,
    )
    address: str = option(
        "", "Ray cluster, such as auto (empty: only this machine)."
    )
    cpus: int = option(1, "On Ray, number of cores for each run.")
    gpus: int = option(
        0,
        "Number of GPUs for each run; 0: with --engine=local, all of them.",
        least=0,
    )
    tpus: int = option(0, "On Ray, number of TPU chips for each run.", least=0)
    shard: str = option(
        "0/1",
        "Part of the runs to train, its number from 0 and the number of parts, "
        "such as 3/8.",
    )
    retries: int = option(
        10,
        "Number of times a run is resumed after its process is lost.",
        least=0,
    )
    retry_failed: bool = option(False, "Start failed runs again.")
    dry_run: bool = option(
        False,
        "Print the cost of the runs and the first commands, and train nothing.",
    )
    all_commands: bool = option(
        False, "With --dry_run, print all commands, not only the first ones."
    )
    measure: bool = option(
        False,
        "Train one run of each row until the time of its steps is known, and "
        "then end; the sweep resumes these runs later.",
    )
    flags: str = option(
        "",
        "Further flags of all runs, such as steps=100,test_lengths=30,60; a "
        "flag that changes results makes different runs.",
    )

    def validate(self):
        """Raises `ConfigError` for the first invalid value."""
        check_options(self)
        if not self.grid:
            raise ConfigError(
                "--grid is missing: a file of your own, or one of "
                f"{', '.join(GRIDS)}."
            )
        check_size(self)
        names = ["jobs"]
        if self.engine == "local":
            names = ["address", "cpus", "tpus"]
        check_unused(self, names, f"with --engine={self.engine}")
        if self.engine == "local" and self.gpus and not self.jobs:
            raise ConfigError(
                "--gpus needs --jobs, the number of runs at a time: that of "
                "GPUs divided by --gpus."
            )
        parse_shard(self.shard)
        split_flags(self.flags)


def parse_shard(text):
    """Parses a shard, such as `3/8`.

    Returns:
        Its number, from 0, and the number of shards.

    Raises:
        ConfigError: If the text has another form.
    """
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text, re.ASCII)
    index, count = map(int, found.groups()) if found else (0, 0)
    if index >= count:
        raise ConfigError(
            "--shard takes a number from 0 and the number of shards, such as "
            f"3/8; got {text!r}."
        )
    return index, count


def split_flags(text):
    """Splits flags with values that may have commas themselves.

    Args:
        text: str. Flags, separated by commas.

    Returns:
        Dict of str.

    >>> split_flags("test_lengths=5,6,encoding=RoPE(a=1, b=2)")
    {'test_lengths': '5,6', 'encoding': 'RoPE(a=1, b=2)'}
    """
    # A comma within parentheses belongs to a call.
    parts = re.split(r",(?=\w+=)(?![^(]*\))", text) if text else []
    pairs = [part.partition("=") for part in parts]
    found = {name.strip(): value for name, _, value in pairs}
    if len(found) < len(pairs) or not all(equals for _, equals, _ in pairs):
        raise ConfigError(
            "--flags takes names with values, each once, as "
            f"steps=100,batch_size=8; got {text!r}."
        )
    return found
