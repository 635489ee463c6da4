"""Constructors of classes and functions of analysis check their arguments.

What a declaration refuses is tested in `checks/test_arguments.py`.
"""

import functools
import pathlib

import keras
import numpy as np
import pytest

from keras_lengen.analysis import (
    Coverage,
    alibi_raw_attention,
    attention_distance,
    attention_divergence,
    attention_maximum,
    attention_sensitivity,
    attention_weights,
    block_activations,
    distance_coverage,
    fit_activation_plane,
    phase_coverage,
    plot_coverage,
    position_coverage,
    rope_raw_attention,
    total_difference,
)
from keras_lengen.checks.arguments import constructor_arguments
from keras_lengen.layers import (
    ATTENTIONS,
    ENCODINGS,
    SAMPLERS,
    TOKEN_SAMPLERS,
    AbacusPositions,
    AxialEncoding,
    GridPositions,
    OrdinalPositions,
    RoPE,
    TransformerBlock,
)
from keras_lengen.layers.encodings.randomized import FixedSampler
from keras_lengen.models import (
    EncoderDecoder,
    LoopedDecoder,
    TransformerDecoder,
    TransformerEncoder,
)
from tests.keras_lengen.bad_inputs import (
    HEAD_SIZES,
    HEADS,
    IDS,
    INF,
    NAN,
    SIZES,
    describe,
    find_fault,
    floats,
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


def list_arguments(cls):
    """Lists the arguments that a class adds to those of Keras."""
    names = set(constructor_arguments(cls))
    if cls is EncoderDecoder:
        # It hands the others on.
        names |= set(constructor_arguments(TransformerEncoder))
    return names - {"name", "trainable", "dtype"}


def find_argument_fault(cls, name, value):
    arguments = {**CLASSES[cls], name: value}
    fault = find_fault(functools.partial(make, cls, **arguments), name)
    return fault and f"{name}={describe(value)}: {fault}"


@pytest.mark.parametrize("cls", CLASSES)
def test_every_argument_is_declared_and_checked(cls):
    make(cls, **CLASSES[cls])
    names = list_arguments(cls)
    fixed = {"sampler"} if issubclass(cls, FixedSampler) else set()
    assert set(cls.arguments()) == names - fixed
    # No declaration admits it.
    faults = [find_argument_fault(cls, name, object()) for name in names]
    assert not [*filter(None, faults)]
    unknown = functools.partial(make, cls, **CLASSES[cls], lenght=1)
    message = r"^\w+ has no argument 'lenght'\. .*It takes "
    with pytest.raises(ValueError, match=message):
        unknown()


@pytest.mark.parametrize(
    "cls",
    [
        pytest.param(
            cls,
            marks=pytest.mark.product
            if issubclass(cls, keras.Model | FixedSampler)
            else (),
        )
        for cls in CLASSES
    ],
)
def test_what_is_admitted_makes_an_object_or_is_named(cls):
    faults = [
        find_argument_fault(cls, name, value)
        for name, declaration in cls.arguments().items()
        for value in ODD
        if declaration.admits(value)
    ]
    assert not [line for line in faults if line and "no error" not in line]


WEIGHTS = np.full((2, 3, 4, 4), 0.25)
NO_WEIGHTS = [
    *("x", WEIGHTS[0], WEIGHTS[:0], WEIGHTS[:, :0], WEIGHTS.astype("int32")),
    *(np.full(WEIGHTS.shape, number) for number in (-0.25, NAN, INF, None)),
]
NO_QUERIES = ["x", 3, np.ones((2, 4)), np.zeros((2, 4), bool)]
NO_FUNCTIONS = ["x", RoPE, RoPE(), lambda x: x[:1], lambda x: "x"]
NO_POSITIONS = ["x", 3, [], [1], [[1, 2], [3, 4]], [0, NAN], [0, 2**40]]
NO_SAMPLERS = [
    *("x", OrdinalPositions, RoPE(), GridPositions(width=3)),
    AbacusPositions(digits=[1]),
]
NO_LENGTHS = ["x", 3, [], [0], [2.5], np.ones((2, 2), "int32")]
VECTORS = floats(20, 4)
MODEL = TransformerEncoder(**SIZES)
FUNCTION = {"raw_attention": NO_FUNCTIONS, "exponentiated": [1]}
DISTANCES = {"distances": ["x", NAN, 2**40, [[1], [1, 2]]]}
COVERAGE = {
    "sampler": NO_SAMPLERS,
    "train_lengths": NO_LENGTHS,
    "test_length": [0],
    "draws": [0],
}
COVERED = {"train_lengths": [2, 4], "test_length": 3}
COVERED["sampler"] = OrdinalPositions()
COUNTS = np.ones(2, "int64")

FUNCTIONS = [
    (
        rope_raw_attention,
        {"distances": [0, 1]},
        {**DISTANCES, "width": [0, 3], "max_wavelength": [1]},
    ),
    (
        alibi_raw_attention,
        {"distances": [0, 1]},
        {**DISTANCES, "slope": [0]},
    ),
    (attention_maximum, {"weights": WEIGHTS}, {"weights": NO_WEIGHTS}),
    (
        attention_distance,
        {"weights": WEIGHTS},
        {"weights": NO_WEIGHTS, "queries": NO_QUERIES},
    ),
    (
        attention_divergence,
        {"weights": WEIGHTS, "other_weights": WEIGHTS},
        {
            "weights": NO_WEIGHTS,
            "other_weights": [*NO_WEIGHTS, WEIGHTS[:1], WEIGHTS[:, :, 1:, 1:]],
            "queries": NO_QUERIES,
        },
    ),
    *(
        (function, {"inputs": IDS, "model": MODEL}, {"model": ["x", RoPE()]})
        for function in (attention_weights, block_activations)
    ),
    (
        fit_activation_plane,
        {"activations": VECTORS},
        {
            "activations": [
                *("x", VECTORS[:0], VECTORS[:, :0], VECTORS[0]),
                *(VECTORS * number for number in (NAN, INF)),
            ],
            "share_within": [0, 1],
        },
    ),
    (
        attention_sensitivity,
        {"positions": [0, 1, 2]},
        {"positions": NO_POSITIONS, **FUNCTION},
    ),
    (
        total_difference,
        {
            "train_positions": [0, 1, 2],
            "test_positions": [0, 1, 2, 3],
            "num_tokens": 2,
        },
        {
            "train_positions": NO_POSITIONS,
            "test_positions": NO_POSITIONS,
            "num_tokens": ["x", 0, 1, 4],
            **FUNCTION,
        },
    ),
    *(
        (function, COVERED, {**COVERAGE, "resolution": [0, 1e-30]})
        for function in (position_coverage, distance_coverage)
    ),
    (
        phase_coverage,
        {**COVERED, "width": 4},
        {
            **COVERAGE,
            "width": [0, 3],
            "max_wavelength": [1],
            "num_phases": [0],
        },
    ),
]


def list_faults(function, right, wrong):
    function(**right)
    for name, values in wrong.items():
        for value in values:
            call = functools.partial(function, **{**right, name: value})
            fault = find_fault(call, name)
            if fault:
                yield f"{name}={describe(value)}: {fault}"


@pytest.mark.parametrize(
    ("function", "right", "wrong"),
    FUNCTIONS,
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_functions_of_analysis(function, right, wrong):
    assert not [*list_faults(function, right, wrong)]


def test_plots(tmp_path):
    pytest.importorskip("matplotlib")
    right = {
        "path": tmp_path / "picture.png",
        "coverage": Coverage("position", np.arange(3.0), COUNTS, COUNTS),
        "title": "Title",
    }
    wrong = {
        "path": [
            *(b"x", None, 3, "", "a\0b", str(tmp_path)),
            pathlib.Path(tmp_path, "missing", "picture.png"),
        ],
        "coverage": ["x", None, Coverage],
        "title": [b"x", None, 3],
    }
    assert not [*list_faults(plot_coverage, right, wrong)]
