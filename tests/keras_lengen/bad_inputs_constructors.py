"""Bad values of the arguments of every public class."""

import functools

import numpy as np

from keras_lengen.checks.arguments import constructor_arguments
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
from tests.keras_lengen.bad_inputs import HEAD_SIZES, SIZES, Case
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.layers.encodings.table import HEADS
from tests.keras_lengen.layers.positions import table as samplers

CLASSES = {
    **{
        name: (cls, encodings.ROWS[name].arguments)
        for name, cls in ENCODINGS.items()
    },
    **{
        name: (cls, samplers.ROWS[name].arguments)
        for name, cls in SAMPLERS.items()
    },
    **{
        name: (cls, samplers.TOKEN_ROWS[name].arguments)
        for name, cls in TOKEN_SAMPLERS.items()
    },
    **{name: (cls, HEAD_SIZES) for name, cls in ATTENTIONS.items()},
    "AxialEncoding": (AxialEncoding, {"row": RoPE(), "column": RoPE()}),
    "GridPositions": (GridPositions, {"width": 3}),
    "TransformerBlock": (TransformerBlock, {"num_heads": HEADS}),
    "TransformerEncoder": (TransformerEncoder, SIZES),
    "TransformerDecoder": (TransformerDecoder, SIZES),
    "LoopedDecoder": (LoopedDecoder, {**SIZES, "loops": 2}),
    "EncoderDecoder": (EncoderDecoder, SIZES),
}
"""Public classes by name, and arguments to construct them with."""

VALUES = {
    "text": "x",
    "empty text": "",
    "bytes": b"x",
    "None": None,
    "True": True,
    "nan": float("nan"),
    "float32 nan": np.float32("nan"),
    "inf": float("inf"),
    "-inf": -float("inf"),
    "-1": -1,
    "0": 0,
    "2.5": 2.5,
    "2**40": 2**40,
    "1e39": 1e39,
    "1e-46": 1e-46,
    "1j": 1j,
    "[]": [],
    "{}": {},
    "(1, 2)": (1, 2),
    "['x']": ["x"],
    "array": np.ones(3),
    "object": object(),
    "class": RoPE,
    "sampler": OrdinalPositions(),
    "encoding": RoPE(),
}
"""What is wrong for almost every argument of a constructor."""

KERAS_ARGUMENTS = {"name", "trainable", "dtype"}


def list_arguments(cls):
    """Names of the arguments that a class adds to those of Keras."""
    names = constructor_arguments(cls).keys()
    if cls is EncoderDecoder:
        # It hands the others on.
        names |= constructor_arguments(TransformerEncoder).keys()
    return names - KERAS_ARGUMENTS


def constructor_cases(name):
    """Odd values of every argument of a class, and an unknown argument.

    Yields:
        A `Case`, and whether the declaration of the argument admits the value.
        If so, the constructor may still refuse it for another argument.
    """
    cls, right = CLASSES[name]
    declared = cls.arguments()
    arguments = list_arguments(cls)
    for argument in sorted(arguments):
        for label, value in VALUES.items():
            call = functools.partial(cls, **{**right, argument: value})
            # A fixed sampler allows no other one.
            admitted = (
                declared[argument].admits(value)
                if argument in declared
                else value is None
            )
            yield Case(name, argument, label, call), admitted
    call = functools.partial(cls, **right, lenght=1)
    yield Case(name, "lenght", "1", call), False
