"""Encodings with a fixed sampler."""

from typing import Any, ClassVar

from keras_lengen.checks.arguments import Argument
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.layers.positions.base import PositionSampler, check_reach
from keras_lengen.layers.positions.randomized_positions import (
    RandomizedArguments,
    RandomizedPositions,
)


class FixedSampler(PositionalEncoding):
    """Mixin that gives an encoding a fixed sampler (a randomized form of it).

    List it before the class of the encoding among the base classes, and between
    the two the class that declares the arguments of `sampler_class`.
    """

    sampler_class: ClassVar[type[PositionSampler]]
    """Class of the fixed sampler, a `PositionSampler`."""

    @classmethod
    def arguments(cls) -> dict[str, Argument[Any]]:
        found = super().arguments()
        del found["sampler"]
        return found

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs.pop("sampler", None) is not None:
            raise ValueError(
                f"{type(self).__name__} brings its own sampler: pass the "
                "sampler to the plain encoding instead."
            )
        super().__init__(*args, **kwargs)

    def assign(self, values: dict[str, Any]) -> None:
        names = self.sampler_class.arguments()
        self.sampler = self.sampler_class(
            **{name: values[name] for name in names}
        )
        # The sampler has it.
        others = {k: v for k, v in values.items() if k != "evaluation"}
        super().assign(others)

    @property
    def evaluation(self) -> Any:
        """The positions that the sampler gives in evaluation."""
        return self.sampler.evaluation

    @evaluation.setter
    def evaluation(self, value: Any) -> None:
        self.sampler.evaluation = value

    def check_length(
        self,
        tokens: int,
        *,
        sampler: PositionSampler | None = None,
        unit: str = "tokens",
    ) -> None:
        # Checked here first, so that the message names the encoding, which the
        # user chose, and not the sampler.
        check_reach(self, tokens, unit)
        super().check_length(tokens, sampler=sampler, unit=unit)


class Randomized(FixedSampler, RandomizedArguments):
    """Mixin that gives an encoding randomized positions.

    List it before the class of the encoding among the base classes. The
    arguments are those of `RandomizedPositions`.
    """

    sampler_class = RandomizedPositions

    max_position: int = argument(default=2048)
