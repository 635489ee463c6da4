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

USUAL = {0, 1, 2, 5, 9, 10, 11, 12, 20, 25, 50, 90, 99}


def count_runs(digits):
    return 1 + sum(a != b for a, b in itertools.pairwise(digits))


def is_power_of_ten(number):
    return str(number).strip("0") == "1"


DIGITS = {
    "repeated_digit": lambda digits: len(set(digits)) == 1,
    "few_digits": lambda digits: len(set(digits)) <= 2,
    "runs": lambda digits: count_runs(digits) <= 4,
    "periodic": lambda digits: (
        any(digits[n:] == digits[:-n] for n in (2, 3, 4) if n < len(digits))
        or len(digits) < 5
    ),
    "palindrome": lambda digits: digits == digits[::-1],
}
"""What is true of all digits of a kind."""

NUMBERS = {
    # The first digit is not zero, and may be another one for that.
    "repeated_digit": lambda text: len({*text[1:]}) <= 1,
    "few_digits": lambda text: len({*text[1:]}) <= 2,
    "runs": lambda text: count_runs(text) <= 5,
    "palindrome": lambda text: text[1:-1] == text[::-1][1:-1],
    "round": lambda text: len(text.rstrip("0")) <= 2,
    "nines": lambda text: {*text} == {"9"} or text == "1",
    "nines_usual_factor": lambda text: {*text} == {"9"},
    "powers_of_ten": is_power_of_ten,
}
"""What is true of each number of a kind."""

TERMS = {
    "equal": lambda terms: len(set(terms)) == 1,
    "complementary": lambda terms: {*str(sum(terms))} == {"9"},
    "full_carry": lambda terms: is_power_of_ten(sum(terms)),
    "nines": lambda terms: {*str(max(terms))} == {"9"},
    "shorter_second": lambda terms: terms[0] > max(terms[1:]) or terms[0] < 10,
}
"""What is true of all numbers of a kind together."""


@pytest.mark.parametrize("kind", DIGITS_OF_KIND)
def test_digits_of_a_kind(kind):
    rng = np.random.default_rng(0)
    for choices in (2, 10):
        seen = set()
        for count in (1, 2, 3, 7, 40):
            for _ in range(50):
                digits = DIGITS_OF_KIND[kind](rng, count, choices)
                assert len(digits) == count
                assert {type(digit) for digit in digits} == {int}
                assert DIGITS.get(kind, bool)(digits)
                seen.update(digits)
        assert seen == set(range(choices))


def test_shares_of_zeros():
    rng = np.random.default_rng(0)
    for kind, share in (("mostly_zeros", 0.775), ("uniform", 0.1)):
        digits = DIGITS_OF_KIND[kind](rng, 20_000)
        assert digits.count(0) / 20_000 == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("kind", TERMS_OF_KIND)
def test_numbers_of_a_kind(kind):
    rng = np.random.default_rng(0)
    for terms, count in itertools.product((2, 3, 5), (1, 2, 3, 7, 40)):
        if count == 1 < terms - 1:
            continue
        drawn = [TERMS_OF_KIND[kind](rng, count, terms) for _ in range(50)]
        for numbers in drawn:
            assert len(numbers) == terms
            assert {type(number) for number in numbers} == {int}
            assert min(numbers) >= 0 and len(str(max(numbers))) == count
            assert all(map(NUMBERS.get(kind, bool), map(str, numbers)))
            assert TERMS.get(kind, bool)(numbers), numbers
        if count > 2:
            assert len(set(drawn)) > 1


@pytest.mark.parametrize("most", [9, 99])
@pytest.mark.parametrize("kind", FACTORS_OF_KIND)
def test_factors_of_a_kind(kind, most):
    rng = np.random.default_rng(0)
    draw_digits, draw_factor = FACTORS_OF_KIND[kind]
    factors = set()
    for count in (2, 3, 7, 40):
        for _ in range(100):
            number = as_number(rng, draw_digits(rng, count))
            assert len(str(number)) == count
            assert NUMBERS.get(kind, bool)(str(number)), number
            factors.add(draw_factor(rng, most))
    assert {0, most} <= factors <= {*range(most + 1)}
    assert factors <= USUAL or "usual" not in kind


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
