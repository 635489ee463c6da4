"""Bad arguments of the functions of `keras_lengen.analysis`."""

import pathlib

import numpy as np

from keras_lengen.analysis import (
    Coverage,
    alibi_raw_attention,
    attention_sensitivity,
    distance_coverage,
    phase_coverage,
    plot_coverage,
    position_coverage,
    rope_raw_attention,
    total_difference,
)
from keras_lengen.layers import GridPositions, OrdinalPositions, RoPE
from tests.keras_lengen.bad_inputs import FLAGS, INF, NAN, NO_TENSORS, Call

NO_NUMBERS = [*NO_TENSORS, None, True, ["x"], [True, False], [1, None], 1j]
NO_NUMBER = [*NO_NUMBERS, [1], NAN, INF]
NO_SIZE = [*NO_NUMBER, 0, -1, 2.5]
NO_POSITIONS = [
    *NO_NUMBERS,
    3,
    [],
    [1],
    [[1, 2], [3, 4]],
    [[1, 2], [3]],
    [0, NAN],
    [0, INF],
    [0, 2**40],
]
NO_FUNCTION = [
    *NO_TENSORS,
    None,
    3,
    RoPE,
    RoPE(),
    OrdinalPositions(),
    lambda distances: distances[:1],
    lambda distances: "x",
]


def analysis_calls():
    """Calls of all functions."""
    distances = [*NO_NUMBERS, NAN, [0, INF], 2**40, [[1], [1, 2]]]
    yield Call(
        "rope_raw_attention",
        rope_raw_attention,
        {"distances": [0, 1]},
        {
            "distances": distances,
            "width": [bad for bad in (*NO_SIZE, 3) if bad is not None],
            "max_wavelength": [*NO_NUMBER, 0, 1, -1],
        },
    )
    yield Call(
        "alibi_raw_attention",
        alibi_raw_attention,
        {"distances": [0, 1]},
        {"distances": distances, "slope": [*NO_NUMBER, 0, -1]},
    )
    attention = {"raw_attention": NO_FUNCTION, "exponentiated": FLAGS}
    yield Call(
        "attention_sensitivity",
        attention_sensitivity,
        {"positions": [0, 1, 2]},
        {"positions": NO_POSITIONS, **attention},
    )
    yield Call(
        "total_difference",
        total_difference,
        {
            "train_positions": [0, 1, 2],
            "test_positions": [0, 1, 2, 3],
            "num_tokens": 2,
        },
        {
            "train_positions": NO_POSITIONS,
            "test_positions": NO_POSITIONS,
            "num_tokens": [*NO_SIZE, 1, 4],
            **attention,
        },
    )
    right = {
        "sampler": OrdinalPositions(),
        "train_lengths": [2, 4],
        "test_length": 3,
    }
    wrong = {
        "sampler": [
            *NO_TENSORS,
            None,
            3,
            OrdinalPositions,
            RoPE(),
            GridPositions(width=3),
        ],
        "train_lengths": [
            *NO_TENSORS,
            None,
            3,
            [],
            [0],
            [2.5],
            ["x"],
            [True],
            [NAN],
            np.ones((2, 2), "int32"),
        ],
        "test_length": NO_SIZE,
        "draws": NO_SIZE,
    }
    resolution = [*NO_NUMBER, 0, -1, 1e-30]
    for coverage in (position_coverage, distance_coverage):
        yield Call(
            coverage.__name__,
            coverage,
            right,
            {**wrong, "resolution": resolution},
        )
    yield Call(
        "phase_coverage",
        phase_coverage,
        {**right, "width": 4},
        {
            **wrong,
            "width": [*NO_SIZE, 3],
            "max_wavelength": [*NO_NUMBER, 0, 1],
            "num_phases": NO_SIZE,
        },
    )


def plot_calls(folder):
    """Calls of what writes to a folder."""
    counts = np.ones(2, "int64")
    yield Call(
        "plot_coverage",
        plot_coverage,
        {
            "path": pathlib.Path(folder) / "picture.png",
            "coverage": Coverage("position", np.arange(3.0), counts, counts),
            "title": "Title",
        },
        {
            "path": [b"x", object(), {}, None, 3, ""],
            "coverage": [*NO_TENSORS, None, 3, Coverage],
            "title": [b"x", object(), {}, None, 3],
        },
    )
