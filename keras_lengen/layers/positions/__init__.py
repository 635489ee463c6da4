"""Position samplers, which assign a position to every token."""

from keras_lengen.checks.arguments import ByName
from keras_lengen.layers.positions.abacus_positions import AbacusPositions
from keras_lengen.layers.positions.augmented_positions import (
    AugmentedPositions,
)
from keras_lengen.layers.positions.base import PositionSampler
from keras_lengen.layers.positions.continuous_positions import (
    ContinuousPositions,
)
from keras_lengen.layers.positions.coupled_positions import (
    CoupledPositions,
)
from keras_lengen.layers.positions.grid_positions import GridPositions
from keras_lengen.layers.positions.interpolated_positions import (
    InterpolatedPositions,
)
from keras_lengen.layers.positions.ordinal_positions import OrdinalPositions
from keras_lengen.layers.positions.randomized_positions import (
    RandomizedPositions,
)
from keras_lengen.layers.positions.shifted_positions import ShiftedPositions
from keras_lengen.layers.positions.skipped_positions import SkippedPositions
from keras_lengen.layers.positions.token_positions import TokenPositions
from keras_lengen.layers.positions.warped_positions import WarpedPositions

_SAMPLERS: dict[str, type[PositionSampler]] = {
    "OrdinalPositions": OrdinalPositions,
    "RandomizedPositions": RandomizedPositions,
    "ContinuousPositions": ContinuousPositions,
    "ShiftedPositions": ShiftedPositions,
    "SkippedPositions": SkippedPositions,
    "InterpolatedPositions": InterpolatedPositions,
    "WarpedPositions": WarpedPositions,
    "AugmentedPositions": AugmentedPositions,
}

SAMPLERS = ByName("sampler", _SAMPLERS)

_TOKEN_SAMPLERS: dict[str, type[TokenPositions]] = {
    "AbacusPositions": AbacusPositions,
    "CoupledPositions": CoupledPositions,
}

TOKEN_SAMPLERS = ByName("sampler of tokens", _TOKEN_SAMPLERS)
"""Samplers that read token ids, and need to know what the ids mean."""

# GridPositions is not in SAMPLERS because it gives pairs of positions, which
# only `AxialEncoding` takes.
__all__ = [
    "AbacusPositions",
    "AugmentedPositions",
    "ContinuousPositions",
    "CoupledPositions",
    "GridPositions",
    "InterpolatedPositions",
    "OrdinalPositions",
    "PositionSampler",
    "RandomizedPositions",
    "ShiftedPositions",
    "SkippedPositions",
    "WarpedPositions",
]
