"""Reports many runs beside published numbers: tables, curves, one page.

    python -m trainers.report --grid=ruoss_table_1 --size=small
    python -m trainers.report --grid=my_grid.py
    python -m trainers.report RUN RUN ... --published=ruoss_2023_table_1

With `--grid`, the runs are those of `trainers.sweep` with the same flags.
Otherwise, each RUN is the working directory of a run or of a population, whose
members are reported as runs. Tasks are rows. Columns are encodings, with those
other flags that differ between the runs.

One table has the highest or the lowest score of the runs of each entry, the
other their mean and standard deviation. Entries without results are marked.

Writes report.md, report.csv with every number of the tables, one picture for
each task, and report.html, which contains all of this.
"""

import dataclasses
import os
import pathlib

from trainers.compare import (
    choose_path,
    find_common,
    list_endings,
    name_runs,
)
from trainers.errors import ConfigError
from trainers.options import command
from trainers.records.markdown import escape
from trainers.reports.options import ReportConfig
from trainers.reports.reading import find_workdirs, read_saved, report_run
from trainers.reports.runs import make_grid
from trainers.reports.writing import write_report
from trainers.sweeps.grids import open_grid
from trainers.sweeps.options import split_flags
from trainers.sweeps.overrides import with_overrides
from trainers.sweeps.root import find_root


def main(config, *texts):
    """Reports a grid, or runs."""
    if bool(config.grid) == bool(texts):
        raise ConfigError("expected either --grid or RUN...; see --help.")
    if config.grid:
        grid, found, directory = _open_grid(config)
        if not grid.size:
            grid, found = _describe_own(grid, found)
        source = ", ".join(filter(None, [config.grid, grid.size]))
        source = f"Grid: {source}."
        if config.flags:
            source += f" Further flags of all runs: {config.flags}."
    else:
        paths = [pathlib.Path(os.path.expanduser(text)) for text in texts]
        found = []
        for path in paths:
            saved = read_saved(path)
            if not saved:
                raise ConfigError(
                    f"{path} is not the working directory of a run."
                )
            found += saved
        grid, directory = make_grid(found, config.published), find_common(paths)
        source = f"Runs: {', '.join(sorted(name_runs(paths, directory)))}."
    runs = [
        report_run(run, saved, grid)
        for run, saved in zip(grid.runs, found, strict=True)
    ]
    write_report(
        _choose_directory(config, directory, source),
        grid,
        runs,
        source,
    )


def _choose_directory(config, directory, source):
    """Returns the directory of a report, without a report of other runs."""
    line = escape(source)
    if not config.output:
        paths = (
            directory / f"report{ending}" / "report.md"
            for ending in list_endings()
        )
        return choose_path(paths, line)[0].parent
    output = pathlib.Path(config.output)
    if output.is_dir() and not choose_path([output / "report.md"], line):
        raise ConfigError(
            f"{output} has a report of other runs: choose another --output."
        )
    return output


def _open_grid(config):
    """Returns the grid, what is saved of each of its runs, and the root."""
    grid = open_grid(config.grid, config.size)
    runs, _ = with_overrides(grid.runs, split_flags(config.flags))
    grid = dataclasses.replace(grid, runs=runs)
    directory = find_root(config.root, grid)
    if not directory.exists():
        size = f" --size={config.size}" if grid.size else ""
        raise ConfigError(
            f"there is no {directory}: run `python -m trainers.sweep "
            f"--grid={config.grid}{size}` first, or choose another --root."
        )
    if not directory.is_dir() or not os.access(directory, os.R_OK | os.X_OK):
        raise ConfigError(
            f"{directory} is not a directory that can be read: choose another "
            "--root."
        )
    paths = find_workdirs(directory)
    found: list = []
    for run in runs:
        path = paths.get(run.digest)
        found.append(next(iter(read_saved(path) if path else ()), None))
    return grid, found, directory


def _describe_own(grid, found):
    """Describes a grid of one's own by its runs that have results.

    Returns:
        A `Grid`, and a list with what is saved of each of its runs.

    Raises:
        ConfigError: If no run has.
    """
    finished = [saved for saved in found if saved and saved.results]
    if not finished:
        raise ConfigError("no run of the grid has finished.")
    if len(finished) < len(found):
        print(f"{len(finished)} of the {len(found)} runs of the grid")
    described = make_grid(finished, "")
    return dataclasses.replace(described, title=grid.title), finished


if __name__ == "__main__":
    command.run(ReportConfig, {}, main, operands="[RUN...]")
