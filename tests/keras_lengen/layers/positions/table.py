"""All samplers as the tests know them: a new one needs a row here."""

import dataclasses

import keras

from keras_lengen.layers import SAMPLERS


@dataclasses.dataclass(frozen=True)
class Row:
    """A sampler and what is promised of it.

    Attributes:
        arguments: Arguments to construct it with. Sequences of eight tokens
            must fit.
        alternatives: Another value of every argument but `seed`, each of which
            changes the positions.
        bottom: Smallest position that eight tokens may get.
        top: Largest position that they may get.
        integers: Whether positions are integers.
    """

    arguments: dict = dataclasses.field(default_factory=dict)
    alternatives: dict = dataclasses.field(default_factory=dict)
    bottom: float = 0
    top: float = 63
    integers: bool = True


ROWS = {
    "OrdinalPositions": Row(top=7),
    "RandomizedPositions": Row(
        arguments={"max_position": 64, "seed": 1},
        alternatives={
            "max_position": 32,
            "resample": "example",
            "evaluation": "even",
            "ordered": False,
            "include_zero": True,
        },
    ),
    "ShiftedPositions": Row(
        arguments={"max_shift": 56, "evaluation": "random", "seed": 1},
        alternatives={"max_shift": 20, "evaluation": "max"},
    ),
    "InterpolatedPositions": Row(
        arguments={"train_length": 6},
        alternatives={"train_length": 4, "scaling_factor": 3.0},
        top=7,
        integers=False,
    ),
    "WarpedPositions": Row(
        # Large fractions, so that three examples meet both warpings.
        arguments={
            "train_length": 6,
            "head_fraction": 0.5,
            "tail_fraction": 0.5,
            "seed": 2,
        },
        alternatives={
            "train_length": 4,
            "head_fraction": 0.1,
            "tail_fraction": 0.0,
            "head_scales": (0.3, 0.9),
            "skew": "beta",
        },
        top=8,
        integers=False,
    ),
    "AugmentedPositions": Row(
        arguments={
            "max_global_shift": 5,
            "max_local_shift": 0.5,
            "max_global_scale": 1.1,
            "seed": 1,
        },
        alternatives={
            "max_global_shift": 9,
            "max_local_shift": 0.25,
            "max_global_scale": 1.2,
            "normalize": True,
        },
        bottom=-11,
        top=19,
        integers=False,
    ),
}

PLUS, EQUALS = 10, 11

TOKEN_ROWS = {
    "AbacusPositions": Row(
        arguments={"digits": range(10), "max_shift": 7, "seed": 1},
        alternatives={
            "digits": range(5),
            "max_shift": 1,
            "resample": "example",
        },
    ),
    "CoupledPositions": Row(
        arguments={
            "items": range(10),
            "end_of_prompt": EQUALS,
            "separators": [PLUS],
            "max_position": 60,
            "seed": 1,
        },
        alternatives={
            "items": range(5),
            "end_of_prompt": PLUS,
            "separators": [],
            "order": "ascending",
            "max_position": None,
            "resample": "batch",
        },
    ),
}
"""Those that read token ids: 0 to 9 are digits."""

VARIANTS = {
    **{name: (name, row.arguments) for name, row in ROWS.items()},
    **{
        f"{name}-{argument}={value}": (name, {**row.arguments, argument: value})
        for name, row in ROWS.items()
        for argument, value in row.alternatives.items()
    },
}
"""Name and arguments of every case: the rows, and each with an alternative."""


def row_of(variant):
    return ROWS[VARIANTS[variant][0]]


def make(variant, **changes):
    """A new sampler, for a key of `VARIANTS`."""
    name, arguments = VARIANTS[variant]
    return SAMPLERS[name](**{**arguments, **changes})


def reset(layer):
    """Makes the sampler draw from here as if it were new."""
    for value in vars(layer).values():
        if isinstance(value, keras.random.SeedGenerator):
            # Position 0 is not among the first draw of this state, so that
            # `include_zero` shows.
            value.state.assign([3, 4])
