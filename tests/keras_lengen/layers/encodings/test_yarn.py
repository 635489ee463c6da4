import math

import numpy as np
import pytest

from keras_lengen.layers import RandomizedYaRN, RoPE, YaRN
from tests.keras_lengen.layers.encodings.test_rope import rotated
from tests.keras_lengen.layers.encodings.turns import (
    measure_magnitude,
    measure_rates,
)

POSITIONS = np.array([0, 1, 7, 100, 4000])


def rates(width, original, scale, *, fast=32, slow=1, truncate=True):
    """The rates of the pairs, by the steps of the authors' code."""
    base = 10000

    def correction(turns):
        return (
            width
            * math.log(original / (2 * math.pi * turns))
            / (2 * math.log(base))
        )

    low, high = correction(fast), correction(slow)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, width - 1)
    high = high if high > low else low + 0.001
    found = []
    for pair in range(width // 2):
        rate = base ** (-2 * pair / width)
        slowed = min(max((pair - low) / (high - low), 0), 1)
        found.append(rate * (1 - slowed) + rate / scale * slowed)
    return found, (low, high)


@pytest.mark.parametrize(
    ("width", "original", "bounds"),
    [
        (128, 2048, (16, 41)),
        (64, 2048, (8, 21)),
        (32, 256, (0, 7)),
        (8, 40, (0, 1)),
    ],
)
@pytest.mark.parametrize("scale", [1, 2, 8])
def test_pairs_turn_by_the_steps(width, original, bounds, scale):
    query = np.random.default_rng(0).normal(size=(1, 5, 1, width))
    encoding = YaRN(original_length=original, scaling_factor=scale)
    turned = encoding(query, positions=POSITIONS)
    expected_rates, found_bounds = rates(width, original, scale)
    assert found_bounds == bounds
    magnitude = {1: 1, 2: 1.069315, 8: 1.207944}[scale]
    for token, position in enumerate(POSITIONS):
        for pair, rate in enumerate(expected_rates):
            # A pair turned on its own, at the rate that it should have.
            features = query[0, token, 0, 2 * pair : 2 * pair + 2]
            expected = rotated(features, position * rate, "interleaved", 2)
            np.testing.assert_allclose(
                turned[0, token, 0, 2 * pair : 2 * pair + 2],
                magnitude * np.array(expected),
                atol=3e-3,
            )


@pytest.mark.parametrize(("original", "beta_slow"), [(6, 1), (2, 1), (60, 10)])
def test_pairs_with_few_turns_are_slowed_also_if_it_is_all_of_them(
    original, beta_slow
):
    encoding = YaRN(
        original_length=original, scaling_factor=2, beta_slow=beta_slow
    )
    plain = measure_rates(RoPE(), 8)
    np.testing.assert_allclose(measure_rates(encoding, 8), plain / 2, rtol=1e-6)


@pytest.mark.parametrize("width", [16, 128])
def test_a_checkpoint_gives_its_own_factor_and_bounds(width):
    arguments = {"scaling_factor": 32, "original_length": 4096}
    for cls in (YaRN, RandomizedYaRN):
        encoding = cls(
            attention_factor=1.25,
            truncate=False,
            **arguments,
            **({"max_position": 99} if cls is RandomizedYaRN else {}),
        )
        expected, bounds = rates(width, 4096, 32, truncate=False)
        assert bounds != rates(width, 4096, 32)[1]
        np.testing.assert_allclose(
            measure_rates(encoding, width), expected, rtol=1e-5
        )
        np.testing.assert_allclose(
            measure_magnitude(encoding, width), 1.25, rtol=1e-6
        )
    # Whatever the length.
    dynamic = YaRN(original_length=2, attention_factor=1.25)
    np.testing.assert_allclose(
        measure_magnitude(dynamic, width, length=9), 1.25, rtol=1e-6
    )


def test_the_randomized_form_turns_by_positions_of_the_longer_range():
    encoding = RandomizedYaRN(
        max_position=2048,
        original_length=256,
        scaling_factor=8,
        evaluation="even",
    )
    query = np.random.default_rng(0).normal(size=(1, 4, 1, 32))
    turned = encoding(query)
    expected_rates, _ = rates(32, 256, 8)
    for token, position in enumerate([0, 512, 1024, 1536]):
        for pair, rate in enumerate(expected_rates):
            features = query[0, token, 0, 2 * pair : 2 * pair + 2]
            expected = rotated(features, position * rate, "interleaved", 2)
            np.testing.assert_allclose(
                turned[0, token, 0, 2 * pair : 2 * pair + 2],
                1.207944 * np.array(expected),
                atol=3e-3,
            )
    assert not np.array_equal(
        encoding(query, training=True), encoding(query, training=True)
    )


@pytest.mark.parametrize(
    ("max_position", "factor"), [(2048, 8.0), (512, 2.0), (100, 1.0)]
)
def test_random_positions_are_interpolated_over_their_range(
    max_position, factor
):
    arguments = {"original_length": 256, "evaluation": "even"}
    arguments["max_position"] = max_position
    query = np.random.default_rng(0).normal(size=(1, 4, 1, 32))
    default = RandomizedYaRN(**arguments)(query)
    given = RandomizedYaRN(scaling_factor=factor, **arguments)(query)
    np.testing.assert_array_equal(default, given)


def test_dynamic_is_fixed_at_the_scale_of_the_length():
    query = np.random.default_rng(0).normal(size=(2, 5, 1, 8))
    dynamic = YaRN(original_length=2048)
    for lengths, scales in ((1024, 2048), (1, 1)), ((4096, 8192), (2, 4)):
        each = dynamic(
            query, positions=POSITIONS, length=np.array(lengths, "int32")
        )
        for example, (length, scale) in enumerate(
            zip(lengths, scales, strict=True)
        ):
            fixed = YaRN(original_length=2048, scaling_factor=scale)
            expected = fixed(query, positions=POSITIONS)
            # A length that is a tensor gives rates in float32: an angle may
            # err by a share of itself.
            for found in (
                each[example],
                dynamic(query, positions=POSITIONS, length=length)[example],
            ):
                np.testing.assert_allclose(found, expected[example], atol=4e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scaling_factor": 0.5}, "scaling_factor .* got 0.5"),
        ({"original_length": 0}, "original_length .* got 0"),
        ({"beta_fast": 1}, "beta_fast=1 and beta_slow=1"),
        ({"beta_slow": 0}, "beta_slow must be .* above 0 .*; got 0"),
        ({"attention_factor": 0}, "attention_factor must be .*; got 0"),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        YaRN(**{"original_length": 40, **arguments})
