"""Grids: the runs that make a table or a figure."""

import dataclasses
import functools
import hashlib
import json
import re
from collections.abc import Callable

from trainers.sweeps.grids.matching import match_task

LONGEST_NAME = 80
"""Most characters of the readable part of a run's name."""

NAMED = (
    *("task", "dataset", "encoding", "sampler", "attention", "scratchpad"),
    *("max_position", "train_length", "learning_rate", "seed"),
)
"""Flags that stand in the name of a run."""

TIME = "train_hours"
"""Score of a `Grid` that shows how long training took."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """A run of a grid, and its cell in the table.

    Several runs have the same cell: they differ in seed or learning rate.

    Attributes:
        trainer: str. Name of the trainer, a module below `trainers`.
        flags: Dict from the names of its flags to their values, without
            `workdir`.
        row: str. Row of the table that the run belongs to.
        column: str. Its column.
        after: `Run` whose weights the run begins with, or `None`. The flag
            `initialize_from` is then its working directory.
    """

    trainer: str
    flags: dict
    row: str
    column: str
    after: "Run | None" = None

    @functools.cached_property
    def digest(self):
        """Digest of all that decides the result, a str of 12 characters."""
        return hashlib.sha256(
            json.dumps(self._record(), sort_keys=True).encode()
        ).hexdigest()[:12]

    @property
    def name(self):
        """Name of its working directory below `runs`.

        A run that several grids have has the same name in all of them.
        """
        values = [str(self.flags[key]) for key in NAMED if key in self.flags]
        text = re.sub(r"[^\w.=-]+", "_", "-".join([self.trainer, *values]))
        return f"{text[:LONGEST_NAME]}-{self.digest}"

    @property
    def first(self):
        """The run that it continues, over any number of continuations."""
        return self if self.after is None else self.after.first

    def with_flags(self, flags):
        """Returns the run with further flags, which continued ones get, too.

        Args:
            flags: Dict from names of flags to values.
        """
        return dataclasses.replace(
            self,
            flags={**self.flags, **flags},
            after=self.after and self.after.with_flags(flags),
        )

    def _record(self):
        after = self.after and self.after._record()
        return {"trainer": self.trainer, "flags": self.flags, "after": after}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Grid:
    """The runs of a table or a figure.

    Attributes:
        name: str. Name on the command line, such as `ruoss_table_1`.
        title: str. Paper, table or figure, and what it shows.
        size: str. `"paper"` or `"small"`; empty: it has one size.
        runs: Tuple of `Run`, in the order in which they run.
        score: str. Entry of `final` in `results.json` that the table shows. An
            entry that is a dict by length is averaged over its lengths, unless
            there are `lengths`. `TIME` stands for the hours of training.
        unit: str. Its unit, such as `"%"`, of which a share of 1 is 100;
            empty: none.
        statistic: `"max"`, `"min"` or `"mean"` over the runs of a cell; `mean`
            is reported with the standard deviation.
        higher_is_better: bool. Which scores are best.
        published: Tuple of names of files with published numbers, without
            `.csv`. The first that has a number for a cell and a statistic
            gives it.
        match: Function of a row and a column; returns what columns of these
            files say of the cell's number, see `matching.py`.
        only_published: Dict from heads of columns that have published numbers
            only, to `model_or_encoding` in the files.
        lengths: Tuple of int. Lengths of the score by length that the table
            shows, each in a column of its own; empty: the score is one number.
        chosen: str or `None`. Flag of which a mean counts only the runs with
            the value whose mean is best; `None`: it counts all runs.
    """

    name: str
    title: str
    size: str
    runs: tuple[Run, ...]
    score: str
    unit: str = ""
    statistic: str = "max"
    higher_is_better: bool = True
    published: tuple[str, ...] = ()
    match: Callable[[str, str], dict[str, str]] = match_task
    only_published: dict[str, str] = dataclasses.field(default_factory=dict)
    lengths: tuple[int, ...] = ()
    chosen: str | None = None

    @property
    def name_of_size(self):
        """Its name and size, such as `ruoss_table_1-small`, a str."""
        return "-".join(filter(None, [self.name, self.size]))

    @property
    def is_time(self):
        """Whether the score is the time of training."""
        return self.score == TIME

    def with_statistic(self, statistic):
        """Returns the grid of the same runs with another statistic."""
        return dataclasses.replace(self, statistic=statistic)


def cross(trainer, common, rows, columns, seeds):
    """Makes a run for each seed, row and column.

    Args:
        trainer: str. Name of the trainer.
        common: Dict of the flags that all runs have.
        rows: Dict from the names of rows to the flags of their runs.
        columns: The same for columns.
        seeds: Iterable of int.

    Returns:
        Tuple of `Run`, those of the first seed first.
    """
    return tuple(
        Run(
            trainer=trainer,
            flags={**common, **of_row, **of_column, "seed": seed},
            row=row,
            column=column,
        )
        for seed in seeds
        for row, of_row in rows.items()
        for column, of_column in columns.items()
    )


def name_encodings(*names):
    """Returns columns that are named after their encodings."""
    return {name: {"encoding": name} for name in names}


def list_runs(runs):
    """Lists runs once each, with those that they continue.

    Args:
        runs: Iterable of `Run`. Cells may share a run.

    Returns:
        Tuple of `Run`. A run stands behind the one that it continues.
    """
    found = {}

    def add(run):
        if run.after is not None:
            add(run.after)
        found.setdefault(run.digest, run)

    for run in runs:
        add(run)
    return tuple(found.values())


def take_shard(runs, index, count):
    """Takes the runs of a shard: continued runs stay with the first ones.

    Args:
        runs: Tuple of `Run`, from `list_runs`.
        index: int from 0. Number of the shard.
        count: int. Number of shards, which together have every run once.

    Returns:
        Tuple of `Run`.
    """
    firsts = list(dict.fromkeys(run.first.digest for run in runs))
    taken = set(firsts[index::count])
    return tuple(run for run in runs if run.first.digest in taken)
