"""Reports many runs beside the published numbers: tables, curves, one page.

    python -m trainers.report --grid=ruoss_table_1 --size=small
    python -m trainers.report RUN RUN ... --published=ruoss_2023_table_1

With `--grid`, the runs are those of `trainers.sweep` with the same flags.
Otherwise each RUN is the working directory of a run: the rows of the table are
tasks, its columns encodings with other flags that differ, and an entry is the
mean over seeds.

Writes report.md, report.csv with every number of the table, one picture for
each task, and report.html, which contains all of this. An entry without results
says so.
"""

import dataclasses
import os
import pathlib

from trainers.compare import find_common
from trainers.errors import ConfigError
from trainers.grids import GRIDS
from trainers.options.choices import check_choice
from trainers.options.command import run
from trainers.options.option import check_options, option
from trainers.records.files import replacing, writing
from trainers.reports.contents import make_blocks, make_csv
from trainers.reports.curves import draw_curves
from trainers.reports.page import make_page
from trainers.reports.places import find_workdirs, make_places, read_run
from trainers.reports.published import list_tables
from trainers.reports.runs import make_grid
from trainers.reports.text import make_text


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
    published: str = option(
        "",
        "Published numbers to show beside each RUN; those of a grid are known.",
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


def main(config, *texts):
    """Reports a grid, or runs."""
    if bool(config.grid) == bool(texts):
        raise ConfigError("expected either --grid or RUN...; see --help.")
    if config.grid:
        check_choice("--grid", config.grid, GRIDS)
        grid = GRIDS[config.grid](config.size)
        root = config.root or f"runs/sweeps/{config.grid}-{config.size}"
        directory = pathlib.Path(root)
        if not directory.exists():
            raise ConfigError(
                f"there is no {directory}: run `python -m trainers.sweep "
                f"--grid={config.grid} --size={config.size}` first, or choose "
                "--root."
            )
        found = find_workdirs(directory)
        paths = [found.get(cell.digest) for cell in grid.cells]
    else:
        paths = [pathlib.Path(os.path.expanduser(text)) for text in texts]
        grid = make_grid(paths, config.published)
        directory = find_common(paths)
    runs = [
        read_run(cell, path, grid)
        for cell, path in zip(grid.cells, paths, strict=True)
    ]
    output = pathlib.Path(config.output or directory / "report")
    write_report(output, grid, runs)


def write_report(directory, grid, runs):
    """Writes the report of a grid.

    Args:
        directory: `pathlib.Path` to write to.
        grid: The `Grid`.
        runs: List of a `trainers.reports.places.Run` for each of its cells.
    """
    places = make_places(grid, runs)
    try:
        pictures = draw_curves(grid, places)
    except ImportError:
        print("no curves: matplotlib is not installed (extra: plots)")
        pictures = []
    blocks = make_blocks(grid, places, pictures)
    files = {
        "report.md": make_text(grid.title, blocks).encode(),
        "report.csv": make_csv(grid, places),
        "report.html": make_page(grid.title, blocks),
        **{picture.name: picture.content for picture in pictures},
    }
    with writing(directory, "nothing was written"):
        directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        with replacing(directory / name) as file:
            file.write(content)
    finished = sum(run.finished for run in runs)
    print(f"{finished} of {len(runs)} runs have finished")
    print(f"report: {directory / 'report.html'}")


if __name__ == "__main__":
    run(ReportConfig, {}, main, operands="[RUN...]")
