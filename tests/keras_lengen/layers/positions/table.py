"""All samplers as the tests know them, from what their classes declare."""

import dataclasses

from keras_lengen.layers import SAMPLERS, TOKEN_SAMPLERS
from tests.keras_lengen.bad_inputs import complete

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


def make_row(cls, conditions):
    """Makes the row of a sampler or of an encoding from its class."""
    declared = cls.arguments()
    seed = {"seed": 1} if "seed" in declared else {}
    arguments = complete(cls, {**seed, **conditions})
    layer = cls(**arguments)
    refuses_samplers = getattr(layer, "uses_token_index", False)
    refused = {"seed", "sampler"} if refuses_samplers else {"seed"}
    return Row(
        arguments=arguments,
        alternatives={
            argument: find_others(declaration, getattr(layer, argument))
            for argument, declaration in declared.items()
            if argument not in refused
        },
    )


def find_others(declaration, value):
    """Lists the examples other than the value in use; at least one."""
    others = [other for other in declaration.examples if other != value]
    return others or [halve(value)]


def halve(value):
    """Half of a number or of a tuple: another value that is right."""
    if isinstance(value, tuple):
        return value[: len(value) // 2]
    return value // 2


def make_rows(classes):
    rows = {
        name: make_row(cls, CONDITIONS.get(name, {}))
        for name, cls in classes.items()
    }
    for name in OTHERS.keys() & rows.keys():
        rows[name].alternatives.update(OTHERS[name])
    return rows


ROWS = make_rows(SAMPLERS)

TOKEN_ROWS = make_rows(TOKEN_SAMPLERS)
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
