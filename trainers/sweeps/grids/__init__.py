"""Named grids of runs: those of the papers' tables and figures."""

from trainers.options.choices import check_choice
from trainers.options.own_classes import names_file
from trainers.sweeps.grids import (
    confounding,
    kazemnejad,
    plain_and_randomized,
    ruoss,
    warping,
)
from trainers.sweeps.grids.grid import Grid, Run
from trainers.sweeps.grids.matching import match_task
from trainers.sweeps.grids.own import read_grid

SIZES = ("paper", "small")

GRIDS = {
    **plain_and_randomized.GRIDS,
    **ruoss.GRIDS,
    **confounding.GRIDS,
    **warping.GRIDS,
    **kazemnejad.GRIDS,
}
"""Functions that make a `Grid` of a size, by its name."""


def open_grid(text, size):
    """Returns the `Grid` of a name and a size, or of a file of one's own.

    Raises:
        ConfigError: If there is no such grid.
    """
    if names_file(text):
        return read_grid(text)
    check_choice("--grid", text, GRIDS)
    return GRIDS[text](size)


def find_match(file):
    """Returns the `match` of the first grid that shows a published file.

    Args:
        file: str. Name of the file, without `.csv`.
    """
    grids = (make("paper") for make in GRIDS.values())
    return next((g.match for g in grids if file in g.published), match_task)


__all__ = ["GRIDS", "SIZES", "Grid", "Run", "find_match", "open_grid"]
