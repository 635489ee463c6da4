"""Polar coordinates of queries and keys."""

import math

import numpy as np
import pytest

from keras_lengen.layers import PoPE
from tests.keras_lengen.layers.encodings.table import (
    HEADS,
    TOKENS,
    WIDTH,
    encode,
    random_inputs,
)
from tests.keras_lengen.models.small import decoder

RANDOM = np.random.default_rng(3)
PHASE = RANDOM.uniform(-6, 0, (HEADS, WIDTH))


def built(**arguments):
    encoding = PoPE(**arguments)
    encoding.build((None, None, HEADS, WIDTH))
    encoding.phase.assign(PHASE)
    return encoding


def find_scores(query, key, positions, phase, base=10000):
    """Scores of every pair from the formula: `(B, H, T, T)`, float64."""
    query, key = (np.log1p(np.exp(np.float64(each))) for each in (query, key))
    width = query.shape[-1]
    steps = np.subtract.outer(positions, positions).T[..., None, None]
    angles = steps * base ** (-np.arange(width) / width) + phase
    product = np.einsum("bihc,bjhc,ijhc->bhij", query, key, np.cos(angles))
    return product / math.sqrt(width)


@pytest.mark.parametrize(
    "positions",
    [np.arange(TOKENS), np.array([3.5, -2, 0, 70, 5, 71])],
    ids=["ordinal", "any"],
)
@pytest.mark.parametrize("base", [10000, 100])
def test_scores_are_the_formula(positions, base):
    inputs = random_inputs("rotation")
    encoding = built(max_wavelength=base)
    np.testing.assert_allclose(
        encode(encoding, inputs, positions),
        find_scores(*inputs, positions, PHASE, base),
        atol=1e-4,
    )


def test_the_phase_starts_at_zero_and_every_layer_has_its_own():
    model = decoder(PoPE(), num_layers=2)
    phases = [w for w in model.weights if w.name == "phase"]
    assert [tuple(phase.shape) for phase in phases] == [(HEADS, WIDTH)] * 2
    for phase in phases:
        np.testing.assert_array_equal(phase, np.zeros((HEADS, WIDTH)))


def test_what_it_does_not_fit_is_refused():
    encoding = built()
    with pytest.raises(ValueError, match=r"width 2 x 8, .* got 1 x 8: make"):
        encoding(np.ones((2, TOKENS, WIDTH), "float32"))
    flat = PoPE()
    flat.build((None, None, WIDTH))
    with pytest.raises(ValueError, match=r"width 1 x 8, .* got 2 x 8: make"):
        flat(np.ones((2, TOKENS, HEADS, WIDTH), "float32"))
