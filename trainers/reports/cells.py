"""The cells of a table: what their runs found, and what is published."""

import dataclasses
import statistics
from typing import Any

import numpy as np

from trainers.engine.problem import average_unseen
from trainers.errors import as_config_errors
from trainers.records.opened_run import make_problem
from trainers.reports.published import PublishedNumber, find_published
from trainers.reports.reading import ReportedRun, find_scale


@dataclasses.dataclass(frozen=True)
class Cell:
    """An entry of a table.

    Attributes:
        row: str. Its row.
        column: str. Its column.
        length: int, the length that it is about; `None`: all.
        problem: str. What its row is trained on.
        runs: Tuple of `ReportedRun`s; empty: the column has only published
            numbers.
        value: float, the statistic over finished runs; `None`: none is.
        deviation: float. Sample standard deviation of a mean of two or more
            runs, or `None`.
        counted: Tuple of the `ReportedRun`s that `value` was taken over.
        published: `PublishedNumber` or `None`.
    """

    row: str
    column: str
    length: int | None
    problem: str
    runs: tuple[ReportedRun, ...]
    value: float | None
    deviation: float | None
    counted: tuple[ReportedRun, ...]
    published: PublishedNumber | None

    @property
    def finished(self):
        """Number of finished runs."""
        return sum(run.finished for run in self.runs)

    @property
    def state(self):
        """str, what has become of the runs.

        `"missing"`: none has begun; `"unfinished"`: some have begun;
        `"incomplete"`: some have finished; `"complete"`: all have finished;
        `"published"`: there are none.
        """
        if not self.runs:
            return "published"
        if self.finished:
            complete = self.finished == len(self.runs)
            return "complete" if complete else "incomplete"
        return "unfinished" if any(r.path for r in self.runs) else "missing"

    @property
    def seeds(self):
        """Number of different seeds of finished runs."""
        return len(self._list_values("seed"))

    @property
    def learning_rates(self):
        """Number of different learning rates of finished runs."""
        return len(self._list_values("learning_rate"))

    def _list_values(self, flag):
        return {run.find_flag(flag) for run in self.runs if run.finished}


def make_cells(grid, runs):
    """Groups runs to the cells of a table.

    Args:
        grid: The `Grid`.
        runs: List of `ReportedRun`s, one for each of its runs, in their order.

    Returns:
        List of `Cell`s, in the order of the runs; those of one row and column
        by length. Behind them stand those with published numbers only.

    Raises:
        ConfigError: If several published numbers suit a cell.
    """
    grouped: dict[tuple[str, str], list[ReportedRun]] = {}
    problems: dict[str, str] = {}
    for run in runs:
        key = run.planned.row, run.planned.column
        grouped.setdefault(key, []).append(run)
        problems.setdefault(run.planned.row, run.problem)
    lengths = grid.lengths or (None,)
    cells = [
        _make_cell(grid, key, length, members)
        for key, members in grouped.items()
        for length in lengths
    ]
    return cells + [
        Cell(
            *(row, column, length, problem, (), None, None, ()),
            _find(grid, (row, named), length),
        )
        for row, problem in problems.items()
        for column, named in grid.only_published.items()
        for length in lengths
    ]


def find_best(grid, cells):
    """Returns the indices of the cells that are best of their problem.

    Two cells are equally good if they are printed alike.

    Args:
        grid: The `Grid`.
        cells: List of `Cell`s.

    Returns:
        Two sets of int: the best ones of ours, and of the published ones.
    """
    ours: dict[Any, dict] = {}
    theirs: dict[Any, dict] = {}
    for index, cell in enumerate(cells):
        key = cell.problem, cell.length
        if cell.value is not None:
            shown = round(cell.value, find_decimals(cell, grid))
            ours.setdefault(key, {})[index] = shown
        if cell.published is not None:
            theirs.setdefault(key, {})[index] = cell.published.value
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


def find_decimals(cell, grid):
    """Returns how many digits of a cell are shown behind the point."""
    if cell.published is not None:
        return cell.published.decimals
    return 1 if grid.unit == "%" else 3


def find_floors(grid, runs):
    """Returns the scores of trivial predictors on the problem of runs.

    Args:
        grid: The `Grid`.
        runs: List of `ReportedRun`s on one problem.

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
        if f"{name}_by_length" in first.results
    }


def _make_cell(grid, key, length, runs):
    counted = [run for run in runs if length in run.scores]
    if counted and grid.chosen and grid.statistic == "mean":
        counted = _choose_value(grid, counted, length)
    values = [run.scores[length] for run in counted]
    value = deviation = None
    if values and grid.statistic == "mean":
        value = statistics.fmean(values)
        if len(values) > 1:
            # Unlike that of `statistics`, it takes scores that are not finite.
            deviation = float(np.std(values, ddof=1))
    elif values:
        value = {"max": max, "min": min}[grid.statistic](values)
    return Cell(
        *(*key, length, runs[0].problem, tuple(runs), value, deviation),
        tuple(counted),
        _find(grid, key, length),
    )


def _choose_value(grid, runs, length):
    """Returns the runs with the best value of the flag `grid.chosen`."""
    groups: dict = {}
    for run in runs:
        groups.setdefault(run.find_flag(grid.chosen), []).append(run)
    sign = 1 if grid.higher_is_better else -1

    def rank(group):
        mean = statistics.fmean(run.scores[length] for run in group)
        # A lucky seed alone is not the best mean.
        return len(group), sign * mean

    return max(groups.values(), key=rank)


def _find(grid, key, length):
    """Returns the number of the first file that has one, or `None`."""
    for file in grid.published:
        wanted = grid.match(*key)
        if length is not None:
            wanted = {**wanted, "evaluated_length": str(length)}
        with as_config_errors(ValueError):
            number = find_published(file, grid.statistic, **wanted)
        if number is not None:
            return number
    return None
