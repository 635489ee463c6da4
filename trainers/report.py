"""Reports many runs beside published numbers: tables, curves, one page.

    python -m trainers.report --grid=ruoss_table_1 --size=small
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
import tempfile

from trainers.compare import find_common
from trainers.errors import ConfigError
from trainers.options import command
from trainers.options.choices import check_choice
from trainers.options.option import check_options, option
from trainers.records.files import replacing
from trainers.reports.cells import make_cells
from trainers.reports.contents import make_blocks, make_csv
from trainers.reports.curves import draw_curves
from trainers.reports.page import make_page
from trainers.reports.published import list_tables
from trainers.reports.reading import find_workdirs, read_saved, report_run
from trainers.reports.runs import make_grid
from trainers.reports.text import make_text
from trainers.sweeps.grids import GRIDS
from trainers.sweeps.options import split_flags
from trainers.sweeps.overrides import with_overrides


@dataclasses.dataclass(frozen=True)
class ReportConfig:
    """Flags of this command."""

    grid: str = option("", "Table or figure to report.", choices=GRIDS)
    size: str = option("small", "Its size.", choices=("small", "paper"))
    root: str = option(
        "",
        "Directory of the runs of the grid; none: that of trainers.sweep, "
        "runs/sweeps/GRID-SIZE.",
        is_path=True,
    )
    flags: str = option(
        "",
        "--flags of the sweep, such as steps=100,test_lengths=30,60; flags "
        "that do not change results may be left out.",
    )
    published: str = option(
        "",
        "Published numbers to show beside the runs; a grid has its own.",
        choices=list_tables(),
    )
    output: str = option(
        "",
        "Directory to write to; none: `report` in --root, or in the directory "
        "that all runs are in.",
        is_path=True,
    )

    def validate(self):
        """Raises `ConfigError` for the first value that cannot work."""
        check_options(self)
        if self.grid and self.published:
            raise ConfigError("--published is for a RUN, not for --grid.")
        if not self.grid and (self.root or self.flags):
            raise ConfigError("--root and --flags are for --grid, not a RUN.")
        split_flags(self.flags)


def main(config, *texts):
    """Reports a grid, or runs."""
    if bool(config.grid) == bool(texts):
        raise ConfigError("expected either --grid or RUN...; see --help.")
    if config.grid:
        grid, found, directory = _open_grid(config)
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
    runs = [
        report_run(run, saved, grid)
        for run, saved in zip(grid.runs, found, strict=True)
    ]
    output = pathlib.Path(config.output or directory / "report")
    write_report(output, grid, runs, config.flags)


def _open_grid(config):
    """Returns the grid, what is saved of each of its runs, and the root."""
    check_choice("--grid", config.grid, GRIDS)
    grid = GRIDS[config.grid](config.size)
    runs, _ = with_overrides(grid.runs, split_flags(config.flags))
    grid = dataclasses.replace(grid, runs=runs)
    root = config.root or f"runs/sweeps/{config.grid}-{config.size}"
    directory = pathlib.Path(root)
    if not directory.exists():
        raise ConfigError(
            f"there is no {directory}: run `python -m trainers.sweep "
            f"--grid={config.grid} --size={config.size}` first, or choose "
            "another --root."
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


def write_report(directory, grid, runs, flags=""):
    """Writes the report of a grid.

    Args:
        directory: `pathlib.Path` to write to.
        grid: The `Grid`.
        runs: List of a `ReportedRun` for each of its runs.
        flags: str. Further flags of all runs.

    Raises:
        ConfigError: If nothing can be written there.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # Fails where files cannot be written.
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        raise ConfigError(
            f"cannot write to {directory}: {error.strerror}. Choose another "
            "--output."
        ) from None
    try:
        pictures = draw_curves(grid, make_cells(grid, runs))
    except ImportError:
        print("no curves: matplotlib is not installed (extra: plots)")
        pictures = []
    blocks = make_blocks(grid, runs, pictures, flags)
    files = {
        "report.md": make_text(grid.title, blocks).encode(),
        "report.csv": make_csv(grid, runs),
        "report.html": make_page(grid.title, blocks),
        **{picture.name: picture.content for picture in pictures},
    }
    for name, content in files.items():
        with replacing(directory / name) as file:
            file.write(content)
    finished = sum(run.finished for run in runs)
    print(f"{finished} of {len(runs)} runs have finished")
    print(f"report: {directory / 'report.html'}")


if __name__ == "__main__":
    command.run(ReportConfig, {}, main, operands="[RUN...]")
