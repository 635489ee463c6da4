"""All samplers as the tests know them, from what their classes declare."""

import dataclasses
import inspect

import keras

from keras_lengen.layers import SAMPLERS, TOKEN_SAMPLERS

PLUS, EQUALS = 10, 11
"""Ids of tokens; 0 to 9 are digits."""

CONDITIONS = {
    # Large fractions and a seed, so that three examples meet both warpings.
    "WarpedPositions": {"head_fraction": 0.5, "tail_fraction": 0.5, "seed": 2},
    # Starts are drawn below a maximum only.
    "CoupledPositions": {"max_position": 60, "separators": (PLUS,)},
}
"""Arguments to construct a sampler with, where its defaults show less."""

OTHERS = {
    # With `None`, positions depend on the padding, as they should.
    "ShiftedPositions": {"max_shift": [28]},
    # Half of an id may be an item, and the conditions are the example.
    "CoupledPositions": {"end_of_prompt": [PLUS], "separators": [()]},
}
"""Alternatives that are not those of the declarations."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A sampler, or an encoding.

    Attributes:
        arguments: Arguments to construct it with: the examples of those that
            it needs, a seed, and its `CONDITIONS`.
        alternatives: Other values of every argument but `seed` and a sampler
            that is refused. Each changes what it computes.
    """

    arguments: dict
    alternatives: dict


def make_row(name, cls):
    """Makes the row of a sampler from its class."""
    declared = cls.arguments()
    defaults = {
        argument: parameter.default
        for argument, parameter in inspect.signature(cls).parameters.items()
        if parameter.default is not parameter.empty
    }
    examples = {
        argument: list(declaration.examples)
        for argument, declaration in declared.items()
    }
    arguments = {"seed": 1} if "seed" in declared else {}
    for argument in declared.keys() - defaults.keys():
        arguments[argument] = examples[argument][0]
        examples[argument].append(halve(arguments[argument]))
    arguments |= CONDITIONS.get(name, {})
    given = {**defaults, **arguments}
    others = {
        argument: [value for value in values if value != given[argument]]
        for argument, values in examples.items()
        if argument != "seed"
    }
    return Row(
        arguments=arguments,
        alternatives={**others, **OTHERS.get(name, {})},
    )


def halve(value):
    """Half of a number or of a tuple: another value that is right."""
    if isinstance(value, tuple):
        return value[: len(value) // 2]
    return value // 2


ROWS = {name: make_row(name, cls) for name, cls in SAMPLERS.items()}

TOKEN_ROWS = {name: make_row(name, cls) for name, cls in TOKEN_SAMPLERS.items()}
"""Those that read token ids."""


VARIANTS = {
    **{name: (name, row.arguments) for name, row in ROWS.items()},
    **{
        f"{name}-{argument}={value}": (name, {**row.arguments, argument: value})
        for name, row in ROWS.items()
        for argument, values in row.alternatives.items()
        for value in values
    },
}
"""Name and arguments of every case: the rows, and each with an alternative."""


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
