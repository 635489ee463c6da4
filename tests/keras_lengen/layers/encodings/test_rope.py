import math

import numpy as np
import pytest

from keras_lengen.layers import Llama3RoPE, LongRoPE, NTKRoPE, RoPE, XPos, YaRN
from tests.keras_lengen.layers.encodings.table import random_inputs
from tests.keras_lengen.layers.encodings.turns import measure_rates

QUERY, KEY = random_inputs("rotation")
LAYOUTS = pytest.mark.parametrize("layout", ["interleaved", "halves"])


def rotated(features, position, layout, rotary_width, max_wavelength=10000):
    """One vector, by the definition."""
    result = list(features)
    for pair in range(rotary_width // 2):
        angle = position / max_wavelength ** (2 * pair / rotary_width)
        if layout == "interleaved":
            first, second = 2 * pair, 2 * pair + 1
        else:
            first, second = pair, pair + rotary_width // 2
        x, y = features[first], features[second]
        result[first] = x * math.cos(angle) - y * math.sin(angle)
        result[second] = y * math.cos(angle) + x * math.sin(angle)
    return result


@pytest.mark.parametrize(
    ("layout", "first_half", "second_half"),
    [
        (
            "interleaved",
            [-0.989992, 0.14112, 0.955336, 0.29552],
            [0.99955, 0.029996, 0.999996, 0.003],
        ),
        (
            "halves",
            [-1.131113, 0, 0.969555, 0],
            [-0.848872, 0, 1.029546, 0],
        ),
    ],
)
def test_published_values(layout, first_half, second_half):
    features = np.array([1, 0] * 4, "float32").reshape(1, 1, 8)
    turned = RoPE(layout=layout)(features, positions=np.array([3]))
    expected = [*first_half, *second_half]
    np.testing.assert_allclose(turned[0, 0], expected, atol=2e-6)


@LAYOUTS
@pytest.mark.parametrize("rotary_fraction", [0.25, 0.75, 1.0])
@pytest.mark.parametrize("max_wavelength", [100, 10000])
def test_features_turn_by_the_definition(
    layout, rotary_fraction, max_wavelength
):
    positions = [0, 1, 2.5, 40, 500, 501]
    encoding = RoPE(
        layout=layout,
        rotary_fraction=rotary_fraction,
        max_wavelength=max_wavelength,
    )
    width = int(8 * rotary_fraction)
    turned = encoding(QUERY, positions=np.array(positions))
    for (example, token, head), _ in np.ndenumerate(QUERY[..., 0]):
        expected = rotated(
            QUERY[example, token, head],
            positions[token],
            layout,
            width,
            max_wavelength,
        )
        np.testing.assert_allclose(
            turned[example, token, head], expected, atol=2e-4
        )


@pytest.mark.parametrize(
    ("fraction", "rates"),
    [
        (1, [1, 0.1, 0.01, 0.001]),
        (0.75, [1, 0.1, 0.01, 0]),
        (0.74, [1, 0.1, 0, 0]),
        (0.25, [1, 0, 0, 0]),
        (0.2, [0, 0, 0, 0]),
        (0, [0, 0, 0, 0]),
    ],
)
def test_the_slowest_pairs_stand_still(fraction, rates):
    encoding = RoPE(fastest_fraction=fraction)
    np.testing.assert_allclose(
        measure_rates(encoding, 8), rates, rtol=1e-5, atol=1e-9
    )


def test_fractions_give_the_number_that_they_were_computed_from():
    # In floating-point numbers, 29 / 100 * 100 is less than 29.
    encoding = RoPE()
    for width in range(2, 258, 2):
        for pairs in range(1, width // 2 + 1):
            encoding.rotary_fraction = 2 * pairs / width
            encoding.fastest_fraction = pairs / (width // 2)
            assert encoding._find_rotary_width(width) == 2 * pairs
            assert np.count_nonzero(encoding._find_frequencies(width)) == pairs
    # Also in what rotates.
    found = measure_rates(RoPE(rotary_fraction=58 / 100), 100)
    assert np.count_nonzero(found) == 29


@pytest.mark.parametrize(
    "encoding",
    [
        RoPE,
        XPos,
        lambda **more: NTKRoPE(scaling_factor=4, **more),
        lambda **more: YaRN(original_length=20, scaling_factor=4, **more),
        lambda **more: Llama3RoPE(original_length=20, **more),
        lambda **more: LongRoPE(original_length=2, **more),
    ],
)
@LAYOUTS
def test_fast_pairs_turn_as_without_the_slow_ones(encoding, layout):
    whole, part = (
        np.asarray(encoding(layout=layout, fastest_fraction=each)(QUERY))
        for each in (1, 0.5)
    )
    fast = [0, 1, 2, 3] if layout == "interleaved" else [0, 1, 4, 5]
    slow = [each for each in range(8) if each not in fast]
    np.testing.assert_array_equal(part[..., fast], whole[..., fast])
    # A multiple of what it was at every position.
    ratio = (part / QUERY)[..., slow]
    pairs = ratio.reshape(*ratio.shape[:-1], 2, 2)
    first, second = (
        (pairs[..., 0], pairs[..., 1])
        if layout == "interleaved"
        else (pairs[..., 0, :], pairs[..., 1, :])
    )
    np.testing.assert_allclose(first, second, rtol=1e-4)
    assert np.abs(part[..., slow] - whole[..., slow]).max() > 1e-4


def test_far_angles_are_as_exact_as_float32_allows():
    turned = RoPE()(QUERY[:, :1], positions=np.array([99_999]))
    expected = rotated(QUERY[0, 0, 0], 99_999, "interleaved", 8)
    np.testing.assert_allclose(turned[0, 0, 0], expected, atol=0.02)


@LAYOUTS
def test_queries_keys_and_flat_inputs_turn_alike(layout):
    encoding = RoPE(layout=layout)
    query, key = encoding(QUERY, KEY)
    np.testing.assert_array_equal(encoding(QUERY), query)
    np.testing.assert_array_equal(encoding(KEY), key)
    flat, flat_key = encoding(QUERY[:, :, 1], KEY[:, :, 1])
    np.testing.assert_array_equal(flat, query[:, :, 1])
    np.testing.assert_array_equal(flat_key, key[:, :, 1])
    np.testing.assert_array_equal(encoding(QUERY[:, :, 1]), query[:, :, 1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layout": "concatenated"}, "layout .* 'concatenated'"),
        ({"max_wavelength": 0.5}, "max_wavelength .* got 0.5"),
        ({"rotary_fraction": 0}, "rotary_fraction .* got 0"),
        ({"rotary_fraction": 1.5}, "rotary_fraction .* got 1.5"),
        ({"fastest_fraction": -0.1}, "fastest_fraction .* got -0.1"),
        ({"fastest_fraction": 1.1}, "fastest_fraction .* got 1.1"),
        ({"rotary_fraction": 0.4}, "rotary_fraction=0.4 of 8, is 3: .* even"),
        ({"rotary_fraction": 0.05}, "rotary_fraction=0.05 .* width 8 .* noth"),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        RoPE(**arguments)(QUERY)
