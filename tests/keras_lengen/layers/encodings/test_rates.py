"""At which angles per position `RoPE` and its scaled forms rotate.

The oracle of each form follows the code of its authors, in double precision.
"""

import math

import numpy as np
import pytest

from keras_lengen.layers import Llama3RoPE, LongRoPE, NTKRoPE, RoPE, YaRN
from tests.covering import cover
from tests.keras_lengen.layers.encodings.table import random_inputs
from tests.keras_lengen.layers.encodings.turns import measure_rates, rotated
from tests.refusals import refuses

QUERY, KEY = random_inputs("rotation")
LAYOUTS = ["interleaved", "halves"]
SHORT, LONG = (1, 1.5, 3, 4), (1, 2, 2.5, 16)


def plain_rates(width, base=10_000.0):
    return base ** (-2 * np.arange(width // 2) / width)


def yarn_rates(
    width, original, scale, *, truncate=True, turns=(32, 1), base=10_000
):
    low, high = (
        width
        * math.log(original / (2 * math.pi * count))
        / (2 * math.log(base))
        for count in turns
    )
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, width - 1)
    end = high if high > low else low + 0.001
    slowed = np.clip((np.arange(width // 2) - low) / (end - low), 0, 1)
    rates = plain_rates(width, base)
    return rates * (1 - slowed) + rates / scale * slowed


def llama_rates(width, factor, original, low, high, base):
    found = []
    for rate in plain_rates(width, base):
        wavelength = 2 * math.pi / rate
        if wavelength > original / low:
            rate /= factor
        elif wavelength >= original / high:
            share = (original / wavelength - low) / (high - low)
            rate = (1 - share) * rate / factor + share * rate
        found.append(rate)
    return found


def make_long(**changes):
    return LongRoPE(
        **{
            "original_length": 40,
            "scaling_factor": 4,
            "short_factors": SHORT,
            "long_factors": LONG,
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("layout", "rotary_fraction", "max_wavelength"),
    cover(LAYOUTS, [0.25, 0.75, 1.0], [100, 10000]),
)
def test_features_turn_by_the_definition(
    layout, rotary_fraction, max_wavelength
):
    positions = [0, 1, 2.5, 40, 500, 99_999]
    encoding = RoPE(
        layout=layout,
        rotary_fraction=rotary_fraction,
        max_wavelength=max_wavelength,
    )
    turned = encoding(QUERY, positions=np.array(positions))
    for (example, token, head), _ in np.ndenumerate(QUERY[..., 0]):
        expected = rotated(
            QUERY[example, token, head],
            positions[token],
            layout,
            int(8 * rotary_fraction),
            max_wavelength,
        )
        np.testing.assert_allclose(
            turned[example, token, head], expected, atol=2e-4
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
    ("encoding", "width", "length", "expected"),
    [
        *(
            (NTKRoPE(scaling_factor=factor), 64, None, plain_rates(64, base))
            for factor, base in ((2, 20452.23), (4, 41829.37))
        ),
        # The slowest pair is slowed by the factor, the fastest one is kept.
        (NTKRoPE(scaling_factor=3), 4, None, [1, 0.01 / 3]),
        (
            Llama3RoPE(
                scaling_factor=4, original_length=64, max_wavelength=10_000
            ),
            8,
            None,
            [1, 0.025465, 0.0025, 0.00025],
        ),
        *(
            (
                Llama3RoPE(
                    scaling_factor=factor,
                    original_length=original,
                    low_frequency_factor=low,
                    high_frequency_factor=high,
                    max_wavelength=base,
                ),
                width,
                None,
                llama_rates(width, factor, original, low, high, base),
            )
            for width, factor, (low, high), (original, base) in cover(
                [8, 64],
                [1, 2, 32],
                [(1, 4), (0.5, 30)],
                [(64, 100), (8192, 500_000)],
            )
        ),
        *(
            (
                make_long(max_wavelength=base),
                8,
                length,
                plain_rates(8, base) / (LONG if length > 40 else SHORT),
            )
            for length, base in cover([1, 40, 41, 1000], [100.0, 10_000.0])
        ),
        # Without factors, long sequences are interpolated.
        *(
            (
                make_long(short_factors=None, long_factors=None),
                8,
                length,
                plain_rates(8) / factor,
            )
            for length, factor in ((40, 1), (41, 4))
        ),
        *(
            (
                YaRN(original_length=original, scaling_factor=scale),
                width,
                None,
                yarn_rates(width, original, scale),
            )
            for (width, original), scale in cover(
                [(128, 2048), (64, 2048), (32, 256), (8, 40)], [1, 2, 8]
            )
        ),
        *(
            (
                YaRN(
                    original_length=2048,
                    scaling_factor=4,
                    beta_fast=turns[0],
                    beta_slow=turns[1],
                    max_wavelength=base,
                ),
                64,
                None,
                yarn_rates(64, 2048, 4, turns=turns, base=base),
            )
            for turns, base in (((16, 2), 10_000), ((32, 1), 500_000))
        ),
        # Pairs with few turns are slowed, also if it is all of them.
        *(
            (
                YaRN(
                    original_length=original,
                    scaling_factor=2,
                    beta_slow=beta_slow,
                ),
                8,
                None,
                plain_rates(8) / 2,
            )
            for original, beta_slow in ((6, 1), (2, 1), (60, 10))
        ),
    ],
)
def test_rates(encoding, width, length, expected):
    lengths = {} if length is None else {"length": length}
    found = measure_rates(encoding, width, **lengths)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("dynamic", "fixed", "lengths"),
    [
        (
            YaRN(original_length=2048),
            lambda length: YaRN(
                original_length=2048, scaling_factor=max(length / 2048, 1)
            ),
            (1024, 4096, 8192),
        ),
        (
            NTKRoPE(original_length=8),
            lambda length: RoPE(
                max_wavelength=10000 * max(length / 8, 1) ** (8 / 6)
            ),
            (6, 24, 8),
        ),
        (
            make_long(),
            lambda length: make_long(
                short_factors=LONG if length > 40 else SHORT,
                long_factors=LONG if length > 40 else SHORT,
            ),
            (40, 41, 40),
        ),
    ],
    ids=["YaRN", "NTKRoPE", "LongRoPE"],
)
def test_every_example_has_the_rates_of_its_length(dynamic, fixed, lengths):
    """And nothing is remembered of a longer one."""
    positions = np.array([0, 1, 7, 40, 100, 4000])
    query = np.random.default_rng(0).normal(size=(3, 6, 1, 8))
    together = np.array(lengths, "int32")
    each = dynamic(query, positions=positions, length=together)
    for example, length in enumerate(lengths):
        expected = fixed(length)(query, positions=positions)[example]
        alone = dynamic(query, positions=positions, length=length)[example]
        # A length that is a tensor gives rates in float32: an angle may err by
        # a share of itself.
        for found in (each[example], alone):
            np.testing.assert_allclose(found, expected, atol=4e-4)
    # The number of the keys, if no length is given.
    unknown = dynamic(query, positions=positions)
    known = dynamic(query, positions=positions, length=6)
    np.testing.assert_allclose(unknown, known, atol=4e-4)


@refuses(
    (RoPE, {"rotary_fraction": 0.4}, "=0.4 of 8, is 3: .* even"),
    (RoPE, {"rotary_fraction": 0.05}, "=0.05 .* width 8 .* noth"),
    (NTKRoPE, {"rotary_fraction": 0.25}, "NTKRoPE needs .* 4 .* 2 of a"),
    (
        Llama3RoPE,
        {"low_frequency_factor": 4},
        "high_frequency_factor=4 and low_frequency_factor=4",
    ),
    (make_long, {"long_factors": (1, 2)}, "long_factors .* the 4 .* got 2"),
    (make_long, {"rotary_fraction": 0.5}, "short_.* the 2 .* got 4"),
    (
        YaRN,
        {"original_length": 40, "beta_fast": 1},
        "beta_fast=1 and beta_slow=1",
    ),
)
def test_wrong_arguments_raise(make, arguments):
    make(**arguments)(QUERY)
