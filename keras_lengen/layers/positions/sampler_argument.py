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
        pairs: bool, whether the sampler may give pairs of positions.
        **kwargs: Arguments of `Argument`.
    """

    def __init__(self, *, pairs: bool = False, **kwargs: Any) -> None:
        code = "RandomizedPositions(max_position=2048)"
        super().__init__(
            PositionSampler, code, absent=OrdinalPositions, **kwargs
        )
        self.pairs = pairs

    def __set__(self, instance: Any, value: PositionSampler | None) -> None:
        super().__set__(instance, value)

    def convert(self, value: Any) -> PositionSampler:
        sampler = super().convert(value)
        if sampler.pairs and not self.pairs:
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
