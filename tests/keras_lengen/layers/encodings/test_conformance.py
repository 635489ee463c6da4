"""What every encoding promises, tested on all that `ENCODINGS` lists."""

import keras
import numpy as np
import pytest

from keras_lengen.checks.constructors import constructor_arguments
from keras_lengen.conformance import check_conformance
from keras_lengen.layers import (
    ENCODINGS,
    AxialEncoding,
    GridPositions,
    PositionalEncoding,
    RandomizedPositions,
)
from keras_lengen.layers.encodings.randomized import FixedSampler
from tests.keras_lengen.layers.arguments import differ
from tests.keras_lengen.layers.encodings.table import (
    FAMILIES,
    ROWS,
    VARIANTS,
    make,
    random_inputs,
)
from tests.keras_lengen.layers.kinds import list_kinds


def is_of_its_own(variant):
    """Whether only its class declares the argument that makes the variant."""
    name, arguments = VARIANTS[variant]
    cls = ENCODINGS[name]
    changed = arguments.items() - ROWS[name].arguments.items()
    return not issubclass(cls, FixedSampler) and not any(
        argument in other.arguments()
        for other in cls.__mro__[1:]
        if other in ENCODINGS.values()
        for argument, _ in changed
    )


FORMULAS = [
    variant for variant in VARIANTS if variant in ROWS or is_of_its_own(variant)
]


@pytest.mark.parametrize(
    "variant", list_kinds(FORMULAS, make, PositionalEncoding)
)
def test_it_keeps_the_promises(variant):
    check_conformance(make(variant))


AXES = {
    "SinusoidalEncoding": "SinusoidalEncoding",
    "LearnedEncoding": "SinusoidalEncoding",
    "RoPE": "NTKRoPE",
    "ALiBi": "RelativeEncoding",
    "XPos": "RoPE",
    "T5Bias": "FIRE",
}
"""An encoding of rows and one of columns."""


def axial(row):
    sampler = GridPositions(
        width=3, row=RandomizedPositions(max_position=64, seed=1)
    )
    return AxialEncoding(row=make(row), column=make(AXES[row]), sampler=sampler)


@pytest.mark.product
@pytest.mark.parametrize("row", list_kinds(AXES, axial, PositionalEncoding))
def test_rows_and_columns_keep_the_promises(row):
    check_conformance(axial(row))


def outcome(encoding):
    keras.utils.set_random_seed(0)
    inputs = random_inputs(encoding.stage)
    outputs = [
        encoding(*inputs),
        encoding(*inputs, positions=np.array([1, 4, 5, 11, 30, 47])),
        encoding(*inputs, training=True),
    ]
    if encoding.uses_length:
        outputs.append(encoding(*inputs, length=1000))
    return outputs, [weight.shape for weight in encoding.weights]


def has_arguments_of_its_own(name):
    """A randomized form has those of its sampler and of its encoding."""
    return name == "RandomizedRoPE" or not name.startswith("Randomized")


@pytest.mark.parametrize(
    "name",
    [
        name
        if name in FAMILIES
        else pytest.param(name, marks=pytest.mark.product)
        for name in filter(has_arguments_of_its_own, ROWS)
    ],
)
def test_every_argument_counts(name):
    alternatives, plain = ROWS[name].alternatives, outcome(make(name))
    counts = {
        argument: [
            differ(outcome(make(name, **{argument: value})), plain)
            for value in values
        ]
        for argument, values in alternatives.items()
    }
    # Layers alone share nothing, and NoPE has no use for positions.
    idle = {"share_layers"} | ({"sampler"} if name == "NoPE" else set())
    assert counts == {
        argument: [argument not in idle] * len(values)
        for argument, values in alternatives.items()
    }
    unused = constructor_arguments(ENCODINGS[name]).keys() - alternatives.keys()
    for argument in unused - {"seed"}:
        with pytest.raises(ValueError, match=argument):
            make(name, **{argument: RandomizedPositions(max_position=64)})
