"""Bad arguments of the functions of `keras_lengen.analysis`."""

import functools
import pathlib

import numpy as np

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
from keras_lengen.layers import (
    AbacusPositions,
    GridPositions,
    OrdinalPositions,
    RoPE,
)
from keras_lengen.models import TransformerEncoder
from tests.keras_lengen.bad_inputs import (
    FLAGS,
    INF,
    NAN,
    NO_TENSORS,
    SIZES,
    TOKEN_IDS,
    Call,
    changed,
    floats,
    integers,
)
from tests.keras_lengen.layers.encodings.table import BATCH, TOKENS

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
    weights = np.full((2, 3, 4, 4), 0.25)
    no_weights = [
        *NO_NUMBERS,
        [[1.0], [0.5, 0.5]],
        weights[0],
        weights[:0],
        weights[:, :0],
        np.zeros((2, 3, 0, 0)),
        weights.astype("complex64"),
        weights.astype("int32"),
        np.full(weights.shape, None),
        np.full(weights.shape, "x"),
        *(np.full(weights.shape, number) for number in (-0.25, NAN, INF)),
    ]
    queries = [*NO_TENSORS, 3, np.ones((2, 4)), np.zeros((2, 4), bool)]
    for function in (attention_maximum, attention_distance):
        wrong = {"weights": no_weights}
        if function is attention_distance:
            wrong["queries"] = queries
        yield Call(function.__name__, function, {"weights": weights}, wrong)
    yield Call(
        "attention_divergence",
        attention_divergence,
        {"weights": weights, "other_weights": weights},
        {
            "weights": no_weights,
            "other_weights": [*no_weights, weights[:1], weights[:, :, 1:, 1:]],
            "queries": queries,
        },
    )
    model = TransformerEncoder(**SIZES)
    for function in (attention_weights, block_activations):
        yield Call(
            function.__name__,
            functools.partial(function, model),
            {"inputs": integers(BATCH, TOKENS)},
            {("inputs", "inputs|token_ids"): TOKEN_IDS},
        )
    vectors = floats(20, 4)
    yield Call(
        "fit_activation_plane",
        fit_activation_plane,
        {"activations": vectors},
        {
            "activations": [
                *NO_NUMBERS,
                [[1.0], [1.0, 2.0]],
                vectors[:0],
                vectors[:, :0],
                vectors[0],
                vectors.astype("complex64"),
                np.full(vectors.shape, "x"),
                changed(vectors, NAN),
                changed(vectors, INF),
            ],
            "share_within": [*NO_NUMBER, 0, 1, -1],
        },
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
            AbacusPositions(digits=[1]),
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
            "path": [
                *(b"x", object(), {}, None, 3, "", "a\0b", folder),
                pathlib.Path(folder) / "missing" / "picture.png",
            ],
            "coverage": [*NO_TENSORS, None, 3, Coverage],
            "title": [b"x", object(), {}, None, 3],
        },
    )
