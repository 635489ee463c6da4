import math

import numpy as np
import pytest

from keras_lengen.layers import LongRoPE
from tests.keras_lengen.layers.encodings.table import random_inputs
from tests.keras_lengen.layers.encodings.turns import (
    measure_magnitude,
    measure_rates,
)
from tests.keras_lengen.models.small import (
    assert_generation_is_the_full_pass,
    decoder,
    token_ids,
    with_random_weights,
)

QUERY = random_inputs("rotation", tokens=5)[0]
SHORT, LONG = (1, 1.5, 3, 4), (1, 2, 2.5, 16)


def make(**changes):
    arguments = {
        "original_length": 40,
        "scaling_factor": 4,
        "short_factors": SHORT,
        "long_factors": LONG,
    }
    return LongRoPE(**{**arguments, **changes})


def test_published_values():
    np.testing.assert_allclose(
        measure_rates(make(), 8), [1, 0.066667, 0.0033333, 0.00025], rtol=1e-4
    )


@pytest.mark.parametrize("length", [1, 40, 41, 1000])
@pytest.mark.parametrize("base", [100, 10_000])
def test_the_length_chooses_the_factors(length, base):
    factors = LONG if length > 40 else SHORT
    expected = [base ** (-pair / 4) / factors[pair] for pair in range(4)]
    found = measure_rates(make(max_wavelength=base), 8, length=length)
    np.testing.assert_allclose(found, expected, rtol=2e-5)


def test_without_factors_long_sequences_are_interpolated():
    encoding = make(short_factors=None, long_factors=None)
    rates = 10_000 ** (-np.arange(4) / 4)
    for length, factor in (40, 1), (41, 4):
        found = measure_rates(encoding, 8, length=length)
        np.testing.assert_allclose(found, rates / factor, rtol=2e-5)


def test_every_example_has_its_length():
    lengths = np.array([40, 41], "int32")
    turned = make()(QUERY, length=lengths)
    for example, length in enumerate(lengths):
        expected = make()(QUERY, length=int(length))
        np.testing.assert_allclose(
            turned[example], expected[example], atol=1e-6
        )
    assert np.abs(turned[1] - make()(QUERY)[1]).max() > 0.1


@pytest.mark.parametrize(
    ("original_length", "factor", "magnitude"),
    [(4096, 32, 1.190238), (40, 4, 1.172947), (40, 1, 1), (2, 8, 2)],
)
def test_vectors_grow_by_the_factor_of_attention(
    original_length, factor, magnitude
):
    encoding = make(original_length=original_length, scaling_factor=factor)
    expected = math.sqrt(1 + math.log(factor) / math.log(original_length))
    assert math.isclose(magnitude, expected, rel_tol=1e-6)
    for length in (2, 5000):
        found = measure_magnitude(encoding, 8, length=length)
        np.testing.assert_allclose(found, magnitude, rtol=1e-5)


def test_a_prompt_is_read_as_long_as_the_whole_text():
    """New tokens beyond the trained length change no key of the prompt."""
    model = with_random_weights(decoder(make(original_length=6)))
    assert_generation_is_the_full_pass(model, token_ids(tokens=4))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"original_length": 1}, "original_length .* from 2 .* got 1"),
        ({"scaling_factor": 0.5}, "scaling_factor .* got 0.5"),
        ({"short_factors": (1, 0, 1, 1)}, "short_factors .* above 0 .* got 0"),
        ({"long_factors": (1, 2)}, "long_factors .* the 4 rotated .* got 2"),
        ({"rotary_fraction": 0.5}, "short_factors .* the 2 rotated .* got 4"),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)(QUERY)
