"""Constructors of classes check their arguments.

What a declaration refuses is tested in `checks/test_arguments.py`.
"""

import functools

import numpy as np
import pytest

from keras_lengen.checks.constructors import constructor_arguments
from keras_lengen.layers import (
    ATTENTIONS,
    ENCODINGS,
    SAMPLERS,
    TOKEN_SAMPLERS,
    AxialEncoding,
    GridPositions,
    OrdinalPositions,
    RoPE,
    TransformerBlock,
)
from keras_lengen.models import (
    EncoderDecoder,
    LoopedDecoder,
    TransformerDecoder,
    TransformerEncoder,
)
from tests.keras_lengen.bad_inputs import (
    HEAD_SIZES,
    HEADS,
    INF,
    NAN,
    SIZES,
    find_fault,
    make,
)

CLASSES = {
    **{
        cls: {}
        for table in (ENCODINGS, SAMPLERS, TOKEN_SAMPLERS)
        for cls in table.values()
    },
    **dict.fromkeys(ATTENTIONS.values(), HEAD_SIZES),
    AxialEncoding: {"row": RoPE(), "column": RoPE()},
    GridPositions: {},
    TransformerBlock: {"num_heads": HEADS},
    TransformerEncoder: SIZES,
    TransformerDecoder: SIZES,
    LoopedDecoder: {**SIZES, "loops": 2},
    EncoderDecoder: SIZES,
}
"""Arguments to construct each public class with."""

ODD = [
    *("x", "", None, True, NAN, INF, -1, 0, 2.5, 2**40, 1e39, 1e-46, 1j),
    *([], {}, (1, 2), ["x"], np.ones(3), RoPE, RoPE(), OrdinalPositions()),
]


def find_argument_fault(cls, name, value):
    arguments = {**CLASSES[cls], name: value}
    fault = find_fault(functools.partial(make, cls, **arguments), name)
    return fault and f"{name}={value!r}: {fault}"


@pytest.mark.parametrize("cls", CLASSES)
def test_every_argument_is_declared_and_checked(cls):
    names = constructor_arguments(cls)
    assert cls.arguments().keys() == names.keys()
    # No declaration admits it.
    faults = [find_argument_fault(cls, name, object()) for name in names]
    assert not [*filter(None, faults)]
    message = r"^\w+ has no argument 'lenght'\. .*It takes "
    with pytest.raises(ValueError, match=message):
        make(cls, **CLASSES[cls], lenght=1)


@pytest.mark.product
@pytest.mark.parametrize("cls", CLASSES)
def test_what_is_admitted_makes_an_object_or_is_named(cls):
    faults = [
        find_argument_fault(cls, name, value)
        for name, declaration in cls.arguments().items()
        for value in ODD
        if declaration.admits(value)
    ]
    assert not [line for line in faults if line and "no error" not in line]
