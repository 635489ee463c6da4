"""Named grids of runs: those of the papers' tables and figures."""

from trainers.grids import (
    confounding,
    kazemnejad,
    plain_and_randomized,
    ruoss,
    warping,
)
from trainers.grids.grid import Cell, Grid

SIZES = ("paper", "small")

GRIDS = {
    **plain_and_randomized.GRIDS,
    **ruoss.GRIDS,
    **confounding.GRIDS,
    **warping.GRIDS,
    **kazemnejad.GRIDS,
}
"""Functions that make a `Grid` of a size, by its name."""

__all__ = ["GRIDS", "SIZES", "Cell", "Grid"]
