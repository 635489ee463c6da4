"""The places of a table: what their runs found, and what is published."""

import dataclasses
import pathlib
import statistics
from typing import Any

from trainers.engine.problem import average_unseen
from trainers.errors import ConfigError
from trainers.grids import Cell
from trainers.records.opened_run import make_problem
from trainers.records.workdir import read_config, read_results
from trainers.reports.matching import match_place
from trainers.reports.published import PublishedNumber, find_published


@dataclasses.dataclass(frozen=True)
class Run:
    """A run of a grid, as far as it is.

    Attributes:
        cell: Its `Cell`.
        path: `pathlib.Path` of its working directory; `None`: not begun.
        config: Dict, its configuration; empty: not begun.
        results: Dict, the entries of its `results.json` without most of its
            metrics; empty: not finished.
        scores: Dict from lengths, or `None` for all of them, to scores in the
            unit of the table.
        curve: Dict from lengths to the metric that the scores are made of.
    """

    cell: Cell
    path: pathlib.Path | None = None
    config: dict = dataclasses.field(default_factory=dict)
    results: dict = dataclasses.field(default_factory=dict)
    scores: dict = dataclasses.field(default_factory=dict)
    curve: dict = dataclasses.field(default_factory=dict)

    @property
    def finished(self):
        """Whether the run has results."""
        return bool(self.results)

    @property
    def problem(self):
        """What the run is trained on, a str; runs with the same one compare."""
        named = (self.cell.flags.get(name) for name in ("task", "dataset"))
        return " ".join(filter(None, [self.cell.trainer, *named]))


@dataclasses.dataclass(frozen=True)
class Place:
    """An entry of a table.

    Attributes:
        row: str. Its row.
        column: str. Its column.
        length: int, the length that it is about; `None`: all.
        runs: Tuple of `Run`s.
        value: float, the statistic over finished runs; `None`: none is.
        deviation: float. Sample standard deviation of a mean of two or more
            runs, or `None`.
        counted: Tuple of the `Run`s that `value` was taken over.
        published: `PublishedNumber` or `None`.
    """

    row: str
    column: str
    length: int | None
    runs: tuple[Run, ...]
    value: float | None
    deviation: float | None
    counted: tuple[Run, ...]
    published: PublishedNumber | None

    @property
    def finished(self):
        """Number of finished runs."""
        return sum(run.finished for run in self.runs)

    @property
    def state(self):
        """str, `"missing"`, `"unfinished"`, `"incomplete"` or `"complete"`.

        Nothing has begun, nothing has finished, some runs have, all have.
        """
        if self.finished:
            complete = self.finished == len(self.runs)
            return "complete" if complete else "incomplete"
        return "unfinished" if any(r.path for r in self.runs) else "missing"

    @property
    def seeds(self):
        """Number of different seeds of finished runs."""
        return len({_get(run, "seed") for run in self.runs if run.finished})

    @property
    def learning_rates(self):
        """Number of different learning rates of finished runs."""
        finished = [run for run in self.runs if run.finished]
        return len({_get(run, "learning_rate") for run in finished})


def find_workdirs(root):
    """Finds the working directories of the cells of grids.

    Args:
        root: `pathlib.Path` of the directory that a sweep writes to.

    Returns:
        Dict from the `digest`s of cells to paths. Cells that have not begun
        are missing.
    """
    found = (root / "cells").glob("*-*")
    return {path.name.rpartition("-")[2]: path for path in found}


def read_run(cell, path, grid):
    """Reads a run.

    Args:
        cell: Its `Cell`.
        path: `pathlib.Path` of its working directory, or `None`.
        grid: The `Grid`.

    Returns:
        A `Run`.

    Raises:
        ConfigError: If a file is damaged or has no score of this kind.
    """
    record = path and read_config(path)
    if record is None:
        return Run(cell)
    results = read_results(path / "results.json")
    if results is None:
        return Run(cell, path, record["config"])
    final, scale = results.pop("final"), find_scale(grid)
    if grid.score not in final:
        raise ConfigError(
            f"{path / 'results.json'} has no {grid.score} in `final`; it has "
            f"{', '.join(final)}."
        )
    score = final[grid.score]
    scores = {None: score}
    if isinstance(score, dict):
        scores = {int(length): value for length, value in score.items()}
        if not grid.lengths:
            scores = {None: statistics.fmean(scores.values())}
    curve = final[name_curve(grid, results)]
    # Thousands of runs are in memory at a time.
    kept = {n: v for n, v in results.items() if n != "best"}
    return Run(
        cell,
        path,
        record["config"],
        {**kept, "steps": final.get("step")},
        {length: value * scale for length, value in scores.items()},
        {int(length): value for length, value in curve.items()},
    )


def name_curve(grid, results):
    """Returns the entry of `final` that the scores of a grid are made of."""
    if grid.score.endswith("_by_length"):
        return grid.score
    written = "generated_" if grid.score.startswith("generated_") else ""
    return f"{written}{results['score_metric']}_by_length"


def find_scale(grid):
    """Returns what to multiply scores with: percent for shares."""
    return 100 if grid.unit == "%" else 1


def make_places(grid, runs):
    """Groups runs to the places of a table.

    Args:
        grid: The `Grid`.
        runs: List of `Run`s, one for each cell, in the same order.

    Returns:
        List of `Place`s, in the order of the cells; those of one row and column
        by length.

    Raises:
        ConfigError: If several published numbers suit a place.
    """
    grouped: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        key = run.cell.row, run.cell.column
        grouped.setdefault(key, []).append(run)
    return [
        _make_place(grid, key, length, members)
        for key, members in grouped.items()
        for length in grid.lengths or [None]
    ]


def find_best(grid, places):
    """Returns the indices of the places that are best of their problem.

    Two places are equally good if they are printed alike.

    Args:
        grid: The `Grid`.
        places: List of `Place`s.

    Returns:
        Two sets of int: the best ones of ours, and of the published ones.
    """
    ours: dict[Any, dict] = {}
    theirs: dict[Any, dict] = {}
    for index, place in enumerate(places):
        key = place.runs[0].problem, place.length
        if place.value is not None:
            shown = round(place.value, find_decimals(place, grid))
            ours.setdefault(key, {})[index] = shown
        if place.published is not None:
            theirs.setdefault(key, {})[index] = place.published.value
    choose = max if grid.higher_is_better else min
    return tuple(
        {
            index
            for values in by_problem.values()
            for index, value in values.items()
            if value == choose(values.values())
        }
        for by_problem in (ours, theirs)
    )


def find_decimals(place, grid):
    """Returns how many digits of a place are shown behind the point."""
    if place.published is not None:
        return place.published.decimals
    return 1 if grid.unit == "%" else 3


def find_floors(grid, runs):
    """Returns the scores of trivial predictors on the problem of runs.

    Args:
        grid: The `Grid`.
        runs: List of `Run`s on one problem.

    Returns:
        Dict from descriptions to scores; empty if there are none, or the table
        shows another metric.
    """
    first = next((run for run in runs if run.finished), None)
    if first is None or grid.score not in ("score", "generated_score"):
        return {}
    problem = make_problem(first.results)
    return {
        label: find_scale(grid)
        * average_unseen(
            first.results[f"{name}_by_length"], problem.longest_trained
        )
        for name, label in problem.floor_labels.items()
    }


def _make_place(grid, key, length, runs):
    counted = [run for run in runs if length in run.scores]
    if counted and grid.chosen:
        counted = _choose_value(grid, counted, length)
    values = [run.scores[length] for run in counted]
    value = deviation = None
    if values and grid.statistic == "mean":
        value = statistics.fmean(values)
        if len(values) > 1:
            deviation = statistics.stdev(values)
    elif values:
        value = {"max": max, "min": min}[grid.statistic](values)
    return Place(
        *key,
        length,
        tuple(runs),
        value,
        deviation,
        tuple(counted),
        _find(grid, key, length),
    )


def _choose_value(grid, runs, length):
    """Returns the runs with the best value of the flag `grid.chosen`."""
    groups: dict = {}
    for run in runs:
        groups.setdefault(_get(run, grid.chosen), []).append(run)
    sign = 1 if grid.higher_is_better else -1

    def rank(group):
        mean = statistics.fmean(run.scores[length] for run in group)
        # A lucky seed alone is not the best mean.
        return len(group), sign * mean

    return max(groups.values(), key=rank)


def _find(grid, key, length):
    if grid.published is None:
        return None
    wanted = match_place(grid.published, *key)
    if length is not None:
        wanted = {**wanted, "evaluated_length": str(length)}
    try:
        return find_published(grid.published, grid.statistic, **wanted)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _get(run, name):
    """Returns the value of a flag of a run, `None` if it has none."""
    return run.config.get(name, run.cell.flags.get(name))
