import itertools

import numpy as np
import pytest

from datasets.text_tasks.structured_digits import (
    DIGITS_OF_KIND,
    FACTORS_OF_KIND,
    TERMS_OF_KIND,
    as_number,
    draw_terms,
)

POWERS = {10**places for places in range(99)}

DIGITS = {
    "repeated_digit": lambda digits: len(set(digits)) == 1,
    "few_digits": lambda digits: len(set(digits)) <= 2,
    "runs": lambda digits: len([*itertools.groupby(digits)]) <= 4,
    "periodic": lambda digits: digits[12:] == digits[:-12],
    "palindrome": lambda digits: digits == digits[::-1],
}

TERMS = {
    "round": lambda terms: all(len(str(n).rstrip("0")) <= 2 for n in terms),
    "powers_of_ten": lambda terms: POWERS.issuperset(terms),
    "equal": lambda terms: len(set(terms)) == 1,
    "complementary": lambda terms: {*str(sum(terms))} == {"9"},
    "full_carry": lambda terms: sum(terms) in POWERS,
    "nines": lambda terms: {*str(max(terms))} == {"9"},
    "shorter_second": lambda terms: terms[0] > max(terms[1:]) or terms[0] < 10,
}


@pytest.mark.parametrize("kind", DIGITS_OF_KIND)
def test_digits_of_a_kind(kind):
    rng = np.random.default_rng(0)
    for choices in (2, 10):
        seen = set()
        for count in (1, 2, 7, 40):
            for _ in range(50):
                digits = DIGITS_OF_KIND[kind](rng, count, choices)
                assert len(digits) == count
                assert DIGITS.get(kind, bool)(digits)
                seen.update(digits)
        assert seen == set(range(choices))


@pytest.mark.parametrize("kind", TERMS_OF_KIND)
def test_numbers_of_a_kind(kind):
    rng = np.random.default_rng(0)
    for terms, count in itertools.product((2, 3, 5), (1, 2, 7, 40)):
        if count == 1 < terms - 1:
            continue
        for _ in range(50):
            numbers = TERMS_OF_KIND[kind](rng, count, terms)
            assert len(numbers) == terms
            assert min(numbers) >= 0 and len(str(max(numbers))) == count
            assert TERMS.get(kind, bool)(numbers), numbers


@pytest.mark.parametrize("kind", FACTORS_OF_KIND)
def test_factors_of_a_kind(kind):
    rng = np.random.default_rng(0)
    draw_digits, draw_factor = FACTORS_OF_KIND[kind]
    assert len(str(as_number(rng, draw_digits(rng, 40)))) == 40
    factors = {draw_factor(rng, 99) for _ in range(2000)}
    usual = {0, 1, 2, 5, 9, 10, 11, 12, 20, 25, 50, 90, 99}
    assert factors == (usual if "usual" in kind else {*range(100)})


def test_training_has_long_equal_and_complementary_parts():
    rng = np.random.default_rng(0)
    sums, differences = [], []
    for _ in range(2000):
        first, second = np.array(draw_terms(rng, 8))[:, :4]
        sums.append(set(first + second))
        differences.append(set(first - second))
    # With uniform digits, at most one pair in 10,000 has such parts.
    assert min(sums.count({9}), differences.count({0})) > 10
