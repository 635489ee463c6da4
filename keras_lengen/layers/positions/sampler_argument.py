"""Declaration of an argument that is a sampler."""

from typing import Any

from keras_lengen.checks.arguments import Instance, InvalidArgument
from keras_lengen.layers.positions.base import PositionSampler
from keras_lengen.layers.positions.ordinal_positions import OrdinalPositions
from keras_lengen.layers.positions.randomized_positions import (
    RandomizedPositions,
)


class SamplerArgument(Instance[PositionSampler]):
    """A sampler, or `None` for positions 0, 1, 2, ...

    Args:
        position_axes: int, the most positions that the sampler may give each
            token: 1, or 2 for a row and a column.
        **kwargs: Arguments of `Argument`.
    """

    def __init__(self, *, position_axes: int = 1, **kwargs: Any) -> None:
        code = "RandomizedPositions(max_position=2048)"
        super().__init__(
            PositionSampler, code, absent=OrdinalPositions, **kwargs
        )
        self.position_axes = position_axes

    def __set__(self, instance: Any, value: PositionSampler | None) -> None:
        super().__set__(instance, value)

    def convert(self, value: Any) -> PositionSampler:
        sampler = super().convert(value)
        if sampler.position_axes > self.position_axes:
            raise InvalidArgument(
                sentence=f"={type(sampler).__name__} gives every token a row "
                "and a column, which only AxialEncoding takes: pass the "
                "sampler to AxialEncoding, or choose a sampler of single "
                "positions."
            )
        return sampler

    @property
    def examples(self) -> tuple[Any, ...]:
        return (RandomizedPositions(max_position=64, seed=1),)
