"""Attention that depends only on distance, against the equations."""

import functools
import math

import numpy as np
import pytest

from keras_lengen.analysis import (
    alibi_raw_attention,
    attention_sensitivity,
    rope_raw_attention,
    total_difference,
)
from keras_lengen.layers import ALiBi
from tests.refusals import refuses

DISTANCES = [0.0, 0.3, 1.0, 7.9, 8.1, 19.5, 40.0, 333.3]


def test_rope_is_the_mean_over_pairs():
    width, base = 6, 50
    expected = [
        sum(math.cos(x * base ** (-2 * m / width)) for m in range(width // 2))
        / (width / 2)
        for x in DISTANCES
    ]
    options = {"width": width, "max_wavelength": base}
    found = rope_raw_attention(DISTANCES, **options)
    # The layer's frequencies are float32.
    np.testing.assert_allclose(found, expected, atol=5e-5)
    backwards = rope_raw_attention(np.negative(DISTANCES), **options)
    np.testing.assert_array_equal(backwards, found)


def test_infinite_width_is_the_limit():
    shares = (np.arange(200_000) + 0.5) / 200_000
    expected = [np.cos(x * 3**-shares).mean() for x in DISTANCES]
    found = rope_raw_attention(DISTANCES, max_wavelength=3)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_alibi_is_the_bias_of_the_layer():
    bias = np.asarray(ALiBi()(np.ones((1, 5, 2, 4)), causal=True))
    found = alibi_raw_attention(np.arange(5)[::-1], slope=1 / 256)
    np.testing.assert_array_equal(found, bias[0, 1, -1])


@pytest.mark.parametrize("exponentiated", [True, False])
def test_sensitivity_and_total_difference(exponentiated):
    def changes(positions):
        distances = np.subtract(positions, positions[0])
        scores = (np.cos(distances) + np.cos(distances / 10)) / 2
        return np.diff(np.exp(scores) if exponentiated else scores)

    attention = functools.partial(
        rope_raw_attention, width=4, max_wavelength=100
    )
    options = {"raw_attention": attention, "exponentiated": exponentiated}
    train, test = [2.0, 3.5, 4.0, 8.0], [0.0, 0.7, 1.0, 1.5, 3.0, 6.0]
    found = attention_sensitivity(train, **options)
    np.testing.assert_allclose(found, changes(train), atol=1e-6)
    for last in (2, 4):
        count = last - 1
        expected = np.abs(changes(train)[-count:] - changes(test)[-count:])
        found = total_difference(train, test, last, **options)
        assert found == pytest.approx(expected.sum(), abs=1e-6)


@refuses(
    (lambda: rope_raw_attention(1, width=3), "width is 3: choose an even"),
    (lambda: rope_raw_attention(1, max_wavelength=1), "above 1 .*; got 1"),
    (lambda: rope_raw_attention(["x"]), "distances must be"),
    (lambda: alibi_raw_attention(1, slope=0), "slope must be .* above 0"),
    (lambda: attention_sensitivity([1]), "T at least 2; got 1"),
    (lambda: attention_sensitivity([[1, 2]]), r"got shape \(1, 2\)"),
    (lambda: total_difference([1, 2], [1, 2, 3], 3), "from 2 to 2, .* 3"),
    (lambda: total_difference([1, 2], [1, 2], 1), "from 2 .* got 1"),
    (
        lambda: attention_sensitivity([1, 2], raw_attention=lambda x: 1),
        "raw_attention must return one number",
    ),
)
def test_wrong_arguments(call):
    call()
