"""Members of a population: seeds and learning rates."""

import dataclasses
import math
import re

from trainers.errors import ConfigError
from trainers.options.choices import described
from trainers.options.option import LARGEST_INTEGER

MAX_SEEDS = 1000
"""Largest number of seeds."""

LEARNING_RATES = (1e-10, 100.0)
"""Smallest and largest learning rate."""

_SEEDS = re.compile(r"\s*(\d{1,10})(?:-(\d{1,10}))?\s*", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Member:
    """What distinguishes a model of a population from the others.

    Attributes:
        seed: int. Seed of its weights, data, positions and dropout.
        learning_rate: float. Learning rate of its optimizer.
    """

    seed: int
    learning_rate: float

    def __str__(self):
        return f"seed {self.seed}, learning rate {self.learning_rate:g}"


def parse_seeds(text):
    """Parses seeds such as `0-9` or `0,3,5-7`; returns them in order.

    Raises:
        ConfigError: If the text has another form, or there are too many.

    >>> parse_seeds("7,0-2")
    (0, 1, 2, 7)
    """
    seeds = set()
    for part in text.split(","):
        match = _SEEDS.fullmatch(part)
        first, last = (
            (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        )
        if not first <= last <= LARGEST_INTEGER:
            raise ConfigError(
                f"--seeds takes integers from 0 to {LARGEST_INTEGER}, as 0-9 "
                f"or 0,3,5-7; got {described(text)}."
            )
        seeds.update(range(first, min(last, first + MAX_SEEDS) + 1))
        if len(seeds) > MAX_SEEDS:
            raise ConfigError(
                f"--seeds takes at most {MAX_SEEDS} seeds; got "
                f"{described(text)}: split them over several populations."
            )
    return tuple(sorted(seeds))


def parse_learning_rates(text):
    """Parses learning rates such as `1e-4,3e-4`; returns them in order.

    Raises:
        ConfigError: If the text has another form, or one is out of range.

    >>> parse_learning_rates("3e-4,1e-4")
    (0.0001, 0.0003)
    """
    least, most = LEARNING_RATES
    try:
        rates = sorted({float(part) for part in text.split(",")})
    except ValueError:
        rates = [math.nan]
    if not all(least <= rate <= most for rate in rates):
        raise ConfigError(
            f"--learning_rates takes numbers from {least:g} to {most:g}, as "
            f"1e-4,3e-4; got {described(text)}."
        )
    return tuple(rates)
