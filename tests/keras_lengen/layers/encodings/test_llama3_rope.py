import math

import numpy as np
import pytest

from keras_lengen.layers import Llama3RoPE, RoPE
from tests.keras_lengen.layers.encodings.turns import measure_rates


def rates(width, factor, original, low, high, base):
    """The rates of the pairs, by wavelengths as in the models' code."""
    found = []
    for pair in range(width // 2):
        rate = base ** (-2 * pair / width)
        wavelength = 2 * math.pi / rate
        if wavelength > original / low:
            rate /= factor
        elif wavelength >= original / high:
            share = (original / wavelength - low) / (high - low)
            rate = (1 - share) * rate / factor + share * rate
        found.append(rate)
    return found


def test_published_values():
    encoding = Llama3RoPE(
        scaling_factor=4, original_length=64, max_wavelength=10_000
    )
    np.testing.assert_allclose(
        measure_rates(encoding, 8), [1, 0.025465, 0.0025, 0.00025], rtol=2e-5
    )


def test_llama_3_1_is_the_default():
    ratio = measure_rates(Llama3RoPE(), 128) / measure_rates(
        RoPE(max_wavelength=500_000), 128
    )
    np.testing.assert_allclose(ratio[:29], 1, rtol=1e-5)
    np.testing.assert_allclose(
        ratio[29:35],
        [0.828168, 0.643743, 0.493507, 0.371122, 0.271425, 0.190211],
        rtol=1e-5,
    )
    np.testing.assert_allclose(ratio[35:], 0.125, rtol=1e-5)


@pytest.mark.parametrize("width", [8, 64])
@pytest.mark.parametrize("factor", [1, 2, 32])
@pytest.mark.parametrize(("low", "high"), [(1, 4), (0.5, 30)])
@pytest.mark.parametrize(("original", "base"), [(64, 100), (8192, 500_000)])
def test_pairs_turn_by_the_definition(width, factor, low, high, original, base):
    encoding = Llama3RoPE(
        scaling_factor=factor,
        original_length=original,
        low_frequency_factor=low,
        high_frequency_factor=high,
        max_wavelength=base,
    )
    np.testing.assert_allclose(
        measure_rates(encoding, width),
        rates(width, factor, original, low, high, base),
        rtol=2e-5,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scaling_factor": 0.5}, "scaling_factor .* got 0.5"),
        ({"original_length": 0}, "original_length .* got 0"),
        ({"low_frequency_factor": 0}, "low_frequency_factor .* got 0"),
        (
            {"low_frequency_factor": 4},
            "high_frequency_factor=4 and low_frequency_factor=4",
        ),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        Llama3RoPE(**arguments)
