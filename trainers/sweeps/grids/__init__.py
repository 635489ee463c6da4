"""Named grids of runs: those of the papers' tables and figures."""

from trainers.sweeps.grids import (
    confounding,
    kazemnejad,
    plain_and_randomized,
    ruoss,
    warping,
)
from trainers.sweeps.grids.grid import Grid, Run
from trainers.sweeps.grids.matching import match_task

SIZES = ("paper", "small")

GRIDS = {
    **plain_and_randomized.GRIDS,
    **ruoss.GRIDS,
    **confounding.GRIDS,
    **warping.GRIDS,
    **kazemnejad.GRIDS,
}
"""Functions that make a `Grid` of a size, by its name."""


def find_match(file):
    """Returns the `match` of the first grid that shows a published file.

    Args:
        file: str. Name of the file, without `.csv`.
    """
    grids = (make("paper") for make in GRIDS.values())
    return next((g.match for g in grids if file in g.published), match_task)


__all__ = ["GRIDS", "SIZES", "Grid", "Run", "find_match"]
