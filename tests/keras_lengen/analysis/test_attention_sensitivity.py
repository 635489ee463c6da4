"""Attention by distance alone, against loops over the equations."""

import functools
import itertools
import math

import numpy as np
import pytest

from keras_lengen.analysis import (
    alibi_raw_attention,
    attention_sensitivity,
    rope_raw_attention,
    total_difference,
)
from keras_lengen.layers import ALiBi, RoPE

DISTANCES = [0.0, 0.3, 1.0, 7.9, 8.1, 19.5, 40.0, 333.3]


@pytest.mark.parametrize("width", [2, 6, 64])
@pytest.mark.parametrize("base", [10000, 50])
def test_rope_is_the_mean_over_pairs(width, base):
    expected = [
        sum(math.cos(x * base ** (-2 * m / width)) for m in range(width // 2))
        / (width / 2)
        for x in DISTANCES
    ]
    found = rope_raw_attention(DISTANCES, width=width, max_wavelength=base)
    # The layer's frequencies are float32.
    np.testing.assert_allclose(found, expected, atol=5e-5)
    backwards = rope_raw_attention(
        np.negative(DISTANCES), width=width, max_wavelength=base
    )
    np.testing.assert_array_equal(backwards, found)


def test_rope_is_what_the_layer_scores():
    ones = np.ones((1, 20, 1, 8), "float32")
    query, key = RoPE()(ones, ones)
    scores = np.einsum("btd,bsd->bts", query[:, :, 0], key[:, :, 0])
    np.testing.assert_allclose(
        scores[0, :, 0] / 8,
        rope_raw_attention(np.arange(20), width=8),
        atol=1e-6,
    )


@pytest.mark.parametrize("base", [10000, 3])
def test_infinite_width_is_the_limit(base):
    shares = (np.arange(200_000) + 0.5) / 200_000
    expected = [np.cos(x * base**-shares).mean() for x in DISTANCES]
    found = rope_raw_attention(DISTANCES, max_wavelength=base)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    wide = rope_raw_attention(DISTANCES, width=100_000, max_wavelength=base)
    np.testing.assert_allclose(wide, found, atol=5e-5)


def test_shapes():
    assert rope_raw_attention(0.0) == 1
    assert rope_raw_attention(3.0).shape == ()
    assert rope_raw_attention(np.zeros((2, 0))).shape == (2, 0)
    grid = np.reshape(DISTANCES, (2, 4))
    for width in (None, 4):
        np.testing.assert_array_equal(
            rope_raw_attention(grid, width=width).ravel(),
            rope_raw_attention(DISTANCES, width=width),
        )


def test_alibi_is_the_bias_of_the_layer():
    bias = np.asarray(ALiBi()(np.ones((1, 5, 2, 4)), causal=True))
    for head, slope in enumerate((1 / 16, 1 / 256)):
        np.testing.assert_array_equal(
            alibi_raw_attention(np.arange(5)[::-1], slope=slope),
            bias[0, head, -1],
        )


@pytest.mark.parametrize("exponentiated", [True, False])
def test_sensitivity_and_total_difference_by_a_loop(exponentiated):
    def attention(distance):
        score = sum(math.cos(distance * 0.1**m) for m in range(2)) / 2
        return math.exp(score) if exponentiated else score

    def changes(positions):
        return [
            attention(after - positions[0]) - attention(before - positions[0])
            for before, after in itertools.pairwise(positions)
        ]

    arguments = {
        "raw_attention": functools.partial(
            rope_raw_attention, width=4, max_wavelength=100
        ),
        "exponentiated": exponentiated,
    }
    train, test = [2.0, 3.5, 4.0, 8.0], [0.0, 0.7, 1.0, 1.5, 3.0, 6.0]
    np.testing.assert_allclose(
        attention_sensitivity(train, **arguments), changes(train), atol=1e-6
    )
    for last in (2, 3, 4):
        expected = sum(
            abs(changes(train)[-back] - changes(test)[-back])
            for back in range(1, last)
        )
        found = total_difference(train, test, last, **arguments)
        assert isinstance(found, float)
        assert found == pytest.approx(expected, abs=1e-6)


def test_equal_positions_differ_by_nothing():
    positions = np.arange(9)
    assert total_difference(positions, positions + 5, 9) == pytest.approx(0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rope_raw_attention(1, width=3), "width is 3: choose an even"),
        (lambda: rope_raw_attention(1, width=0), "width must be a positive"),
        (lambda: rope_raw_attention(1, max_wavelength=1), "above 1 .*; got 1"),
        (lambda: alibi_raw_attention(1, slope=0), "slope must be .* above 0"),
        (lambda: attention_sensitivity([1]), "T at least 2; got 1"),
        (lambda: attention_sensitivity(np.ones((2, 3))), r"got shape \(2, 3\)"),
        (
            lambda: total_difference([1, 2], [1, 2, 3], 3),
            "from 2 to 2, .* shorter sequence; got 3",
        ),
        (lambda: total_difference([1, 2], [1, 2], 1), "from 2 .* got 1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
