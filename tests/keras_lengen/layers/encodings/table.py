"""All encodings as the tests know them, from what their classes declare.

Imports no backend, so that every backend can compute what the rows describe.
"""

from keras_lengen.checks.arguments import Choice
from keras_lengen.conformance import encodings as conformance
from keras_lengen.layers import ENCODINGS, AxialEncoding, GridPositions
from keras_lengen.layers.encodings.randomized import FixedSampler
from tests.keras_lengen.layers.positions.table import make_row

BATCH, TOKENS = conformance.BATCH, conformance.TOKENS
HEADS, WIDTH = conformance.HEADS, conformance.WIDTH
MODEL_DIM = HEADS * WIDTH
LONGEST = 1100
"""Rows of a table of positions, where an encoding has one."""

random_inputs = conformance.make_inputs
encode = conformance.encode

CONDITIONS = {
    # Unlike RoPE even if the length is unknown.
    "NTKRoPE": {"scaling_factor": 4.0},
    "YaRN": {"original_length": 2048, "scaling_factor": 4.0},
    # Groups that do not divide the tests' shifts of positions.
    "SelfExtend": {"group_size": 6, "window": 4},
    "ReRoPE": {"window": 4},
    # So slow a decay that features keep their size at far positions.
    "XPos": {"scale_base": 2**20},
    # By default, one of two heads has a window, which holds one token only.
    "HardALiBi": {"windowed_heads": 2},
    # Draws in evaluation too.
    "SHAPE": {"evaluation": "random"},
    # Large fractions, so that two examples meet both warpings, and sequences
    # longer than the trained ones.
    "WarpedRoPE": {
        "train_length": 4,
        "head_fraction": 0.5,
        "tail_fraction": 0.5,
    },
}
"""Arguments to construct an encoding with, where its defaults show less."""


def list_variants(cls):
    """Lists the arguments that choose between formulas.

    A class with a fixed sampler counts only arguments that it declares itself:
    its encoding and its sampler are tested with the others.
    """
    own = {
        argument
        for base in cls.__mro__
        if issubclass(base, FixedSampler) or not issubclass(cls, FixedSampler)
        for argument in vars(base)
    }
    return [
        argument
        for argument, declaration in cls.arguments().items()
        if argument in own
        and (isinstance(declaration, Choice) or declaration.variant)
    ]


def make_row_of(name):
    cls = ENCODINGS[name]
    conditions = CONDITIONS.get(name, {})
    if "max_position" in cls.arguments():
        conditions = {"max_position": LONGEST, **conditions}
    return make_row(cls, conditions)


ROWS = {name: make_row_of(name) for name in ENCODINGS}

VARIANTS = {
    **{name: (name, row.arguments) for name, row in ROWS.items()},
    **{
        f"{name}-{value}": (name, {**row.arguments, argument: value})
        for name, row in ROWS.items()
        for argument in list_variants(ENCODINGS[name])
        for value in row.alternatives[argument]
    },
}
"""Name and arguments of every case: the rows, and their variants."""

BIDIRECTIONAL = [
    variant
    for variant, (name, _) in VARIANTS.items()
    if not ENCODINGS[name].causal_only
]
"""The variants that an encoder may have."""


FAMILIES = (
    "NoPE",
    "SinusoidalEncoding",
    "RandomizedRoPE",
    "XPos",
    "RelativeEncoding",
    "FIRE",
)
"""One encoding of each kind, for what is the same for all of a kind."""


def make(variant, **changes):
    """A new encoding, for a key of `VARIANTS`."""
    name, arguments = VARIANTS[variant]
    return ENCODINGS[name](**{**arguments, **changes})


def make_axial(cls, width=4):
    """An encoding of rows and columns alike, numbered by a grid."""
    sampler = GridPositions(width=width)
    return AxialEncoding(row=cls(), column=cls(), sampler=sampler)


def make_built(variant, **changes):
    """A new encoding with its weights."""
    encoding = make(variant, **changes)
    encoding.build(*(each.shape for each in random_inputs(encoding.stage)))
    return encoding
