"""Options of `python -m trainers.report`."""

import dataclasses

from trainers.errors import ConfigError
from trainers.options.option import check_options, check_unused, option
from trainers.reports.published import list_tables
from trainers.sweeps.grids import GRIDS, SIZES
from trainers.sweeps.options import check_size, split_flags


@dataclasses.dataclass(frozen=True)
class ReportConfig:
    """Flags of this command."""

    grid: str = option(
        "", "Table or figure to report.", choices=GRIDS, takes_file=True
    )
    size: str = option("small", "Size of the grid.", choices=SIZES)
    root: str = option(
        "",
        "Directory of the runs of the grid (empty: that of trainers.sweep, "
        "runs/sweeps/GRID-SIZE).",
        is_path=True,
    )
    flags: str = option(
        "",
        "--flags of the sweep, such as steps=100,test_lengths=30,60; flags "
        "that do not change results may be left out.",
    )
    published: str = option(
        "",
        "Published numbers to show beside the runs; a grid already has them.",
        choices=list_tables(),
    )
    output: str = option(
        "",
        "Directory to write to (empty: `report` in --root, or in the directory "
        "of all runs).",
        is_path=True,
    )

    def validate(self):
        """Raises `ConfigError` for the first invalid value."""
        check_options(self)
        if self.grid and self.published:
            raise ConfigError("--published is for a RUN, not for --grid.")
        check_size(self)
        if not self.grid:
            names = ("size", "root", "flags")
            check_unused(self, names, "without --grid")
        split_flags(self.flags)
