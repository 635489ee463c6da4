"""Kinds of digits and numbers have the structure that their names say."""

import itertools

import numpy as np
import pytest

from datasets.text_tasks.structured_digits import (
    DIGITS_OF_KIND,
    FACTORS_OF_KIND,
    TERMS_OF_KIND,
    as_number,
    draw_parts,
    draw_terms,
)


def count_runs(digits):
    return 1 + sum(a != b for a, b in itertools.pairwise(digits))


def is_power_of_ten(number):
    return str(number).strip("0") == "1"


DIGITS = {
    "uniform": lambda digits: True,
    "repeated_digit": lambda digits: len(set(digits)) == 1,
    "few_digits": lambda digits: len(set(digits)) <= 2,
    "mostly_zeros": lambda digits: True,
    "runs": lambda digits: count_runs(digits) <= 4,
    "periodic": lambda digits: (
        any(digits[n:] == digits[:-n] for n in (2, 3, 4) if n < len(digits))
        or len(digits) < 5
    ),
    "palindrome": lambda digits: digits == digits[::-1],
}
"""What is true of all digits of a kind."""


@pytest.mark.parametrize("choices", [2, 10])
@pytest.mark.parametrize("kind", DIGITS_OF_KIND)
def test_digits_of_a_kind(kind, choices):
    rng = np.random.default_rng(0)
    seen = set()
    for count in (1, 2, 3, 7, 40):
        for _ in range(50):
            digits = DIGITS_OF_KIND[kind](rng, count, choices)
            assert len(digits) == count
            assert all(type(d) is int and 0 <= d < choices for d in digits)
            assert DIGITS[kind](digits)
            seen.update(digits)
    assert seen == set(range(choices))


def test_shares_of_zeros():
    rng = np.random.default_rng(0)
    for kind, share in (("mostly_zeros", 0.775), ("uniform", 0.1)):
        digits = DIGITS_OF_KIND[kind](rng, 20_000)
        assert digits.count(0) / 20_000 == pytest.approx(share, abs=0.01)


PAIRS = {
    **{
        kind: lambda first, second: True
        for kind in ("uniform", "mostly_zeros", "periodic")
    },
    # The first digit is not zero, and may be another one for that.
    "repeated_digit": lambda first, second: len({*str(first)[1:]}) <= 1,
    "few_digits": lambda first, second: len({*str(first)[1:]}) <= 2,
    "runs": lambda first, second: count_runs(str(first)) <= 5,
    "palindrome": lambda first, second: (
        str(first)[1:-1] == str(first)[::-1][1:-1]
    ),
    "round": lambda first, second: len(str(second).rstrip("0")) <= 2,
    "equal": lambda first, second: first == second,
    "complementary": lambda first, second: {*str(first + second)} == {"9"},
    "full_carry": lambda first, second: is_power_of_ten(first + second),
    "nines": lambda first, second: (
        {*str(max(first, second))} == {"9"}
        and min(first, second) in (1, max(first, second))
    ),
    "powers_of_ten": lambda first, second: (
        is_power_of_ten(first) and is_power_of_ten(second)
    ),
    "shorter_second": lambda first, second: (
        len(str(second)) < len(str(first)) or len(str(first)) == 1
    ),
}
"""What is true of all pairs of numbers of a kind."""


@pytest.mark.parametrize("kind", TERMS_OF_KIND)
def test_pairs_of_a_kind(kind):
    rng = np.random.default_rng(0)
    for count in (1, 2, 3, 7, 40):
        drawn = [TERMS_OF_KIND[kind](rng, count) for _ in range(50)]
        for first, second in drawn:
            assert type(first) is type(second) is int
            assert min(first, second) >= 0
            assert len(str(max(first, second))) == count
            assert PAIRS[kind](first, second), (first, second)
        if count > 2:
            assert len(set(drawn)) > 1


TERMS = {
    "equal": lambda terms: len(set(terms)) == 1,
    "complementary": lambda terms: {*str(sum(terms))} == {"9"},
    "full_carry": lambda terms: is_power_of_ten(sum(terms)),
    "nines": lambda terms: {*str(max(terms))} == {"9"} and min(terms) > 0,
    "powers_of_ten": lambda terms: all(map(is_power_of_ten, terms)),
    "shorter_second": lambda terms: terms[0] > max(terms[1:]),
}
"""What is true of all numbers of a kind; of other kinds, it is the digits."""


@pytest.mark.parametrize("terms", [3, 5])
@pytest.mark.parametrize("kind", TERMS_OF_KIND)
def test_several_numbers_of_a_kind(kind, terms):
    rng = np.random.default_rng(0)
    for count in (2, 3, 7, 40):
        for _ in range(50):
            drawn = TERMS_OF_KIND[kind](rng, count, terms)
            assert len(drawn) == terms
            assert len(str(max(drawn))) == count
            assert all(type(term) is int and term >= 0 for term in drawn)
            if kind in TERMS:
                assert TERMS[kind](drawn), drawn
            else:
                assert all(PAIRS[kind](term, term) for term in drawn), drawn


NUMBERS = {
    "round": lambda number, factor: len(str(number).rstrip("0")) <= 2,
    "nines": lambda number, factor: {*str(number)} == {"9"},
    "powers_of_ten": lambda number, factor: is_power_of_ten(number),
    "usual_factor": lambda number, factor: factor in USUAL,
    "nines_usual_factor": lambda number, factor: (
        {*str(number)} == {"9"} and factor in USUAL
    ),
}
"""What is true of numbers and factors of a kind that are not of all digits."""

USUAL = {0, 1, 2, 5, 9, 10, 11, 12, 20, 25, 50, 90, 99}


@pytest.mark.parametrize("most", [9, 99])
@pytest.mark.parametrize("kind", FACTORS_OF_KIND)
def test_factors_of_a_kind(kind, most):
    rng = np.random.default_rng(0)
    draw_digits, draw_factor = FACTORS_OF_KIND[kind]
    factors = set()
    for count in (2, 3, 7, 40):
        for _ in range(100):
            number = as_number(rng, draw_digits(rng, count))
            factor = draw_factor(rng, most)
            assert len(str(number)) == count
            factors.add(factor)
            if kind in NUMBERS:
                assert NUMBERS[kind](number, factor), (number, factor)
            else:
                assert PAIRS[kind](number, number)
    assert {0, most} <= factors <= {*range(most + 1)}


def test_training_has_long_equal_and_complementary_parts():
    rng = np.random.default_rng(0)
    found = {"equal": 0, "complementary": 0, "zeros": 0}
    for _ in range(2000):
        first, second = draw_terms(rng, 8)
        assert len(first) == len(second) == 8
        assert {*first, *second} <= {*range(10)}
        pairs = list(zip(first[:4], second[:4], strict=True))
        found["equal"] += all(a == b for a, b in pairs)
        found["complementary"] += all(a + b == 9 for a, b in pairs)
        found["zeros"] += all(a == b == 0 for a, b in pairs)
    # With uniform digits, at most one pair in 10,000 has such parts.
    assert min(found.values()) > 10, found


def test_parts_of_single_digits():
    rng = np.random.default_rng(0)
    drawn = {tuple(draw_parts(rng, 6, choices=2)) for _ in range(2000)}
    assert len(drawn) == 2**6


@pytest.mark.parametrize(
    ("digits", "low", "high"), [([0], 0, 0), ([7], 7, 7), ([0, 5], 15, 95)]
)
def test_numbers_do_not_begin_with_zero(digits, low, high):
    rng = np.random.default_rng(0)
    numbers = [as_number(rng, digits) for _ in range(200)]
    assert min(numbers) == low and max(numbers) == high
