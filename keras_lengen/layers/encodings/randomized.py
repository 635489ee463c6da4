"""Encodings with a fixed sampler."""

from typing import Any, Literal

from keras_lengen.checks.arguments import Argument
from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.layers.positions.base import PositionSampler, check_reach
from keras_lengen.layers.positions.randomized_positions import (
    RandomizedPositions,
)


class FixedSampler(PositionalEncoding):
    """Mixin that gives an encoding a fixed sampler (a randomized form of it).

    List it before the class of the encoding among the base classes. The
    constructor then takes the arguments of `sampler_class` in addition to
    those of the encoding; a subclass names them in its own constructor.
    """

    sampler_class: type[PositionSampler]
    """Class of the fixed sampler, a `PositionSampler`."""

    @classmethod
    def arguments(cls) -> dict[str, Argument[Any]]:
        return {
            **{
                name: argument
                for name, argument in super().arguments().items()
                if name != "sampler"
            },
            **cls.sampler_class.arguments(),
        }

    def __init__(self, **kwargs: Any) -> None:
        if kwargs.pop("sampler", None) is not None:
            raise ValueError(
                f"{type(self).__name__} brings its own sampler: pass the "
                "sampler to the plain encoding instead."
            )
        arguments = {
            name: kwargs.pop(name)
            for name in self.sampler_class.arguments()
            if name in kwargs
        }
        sampler = self.sampler_class(**arguments)
        super().__init__(sampler=sampler, **kwargs)
        for name in self.sampler_class.arguments():
            if name != "evaluation":
                setattr(self, name, getattr(sampler, name))

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


class Randomized(FixedSampler):
    """Mixin that gives an encoding randomized positions.

    List it before the class of the encoding among the base classes. The
    arguments are those of `RandomizedPositions`.
    """

    sampler_class = RandomizedPositions

    def __init__(
        self,
        *,
        max_position: int = 2048,
        resample: Literal["batch", "example"] = "batch",
        evaluation: Literal["random", "even", "ordinal"] = "random",
        ordered: bool = True,
        include_zero: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            max_position=max_position,
            resample=resample,
            evaluation=evaluation,
            ordered=ordered,
            include_zero=include_zero,
            seed=seed,
            **kwargs,
        )
