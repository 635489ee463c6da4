"""Kinds of digits and numbers: zeros, runs, equal and complementary parts.

People write numbers like 1000, 1999 or 250000. Uniform digits hardly ever look
like these, so a model that was only trained and tested on uniform digits may
fail on them. `DIGITS_OF_KIND`, `TERMS_OF_KIND` and `FACTORS_OF_KIND` list the
kinds of problems to evaluate; training draws `draw_parts` and `draw_terms`.
"""

import itertools

import numpy as np


def draw_uniform(rng, count, choices=10):
    """Draws uniform digits; like all functions here, a list of int."""
    return rng.integers(0, choices, count).tolist()


def draw_repeated(rng, count, choices=10):
    """Draws one digit, repeated: 7 7 7 7."""
    return [int(rng.integers(choices))] * count


def draw_few(rng, count, choices=10):
    """Draws digits from two values: 4 1 1 4."""
    return rng.choice(rng.integers(0, choices, 2), count).tolist()


def draw_sparse(rng, count, choices=10):
    """Draws digits that are zero with probability 3/4: 0 0 3 0."""
    kept = rng.random(count) < 0.25
    return (kept * rng.integers(0, choices, count)).tolist()


def draw_runs(rng, count, choices=10):
    """Draws runs of equal digits, two to four of them where there is room."""
    most = min(4, count)
    runs = int(rng.integers(min(2, most), most + 1))
    digits = []
    for size in _split(rng, count, runs):
        digits += draw_repeated(rng, size, choices)
    return digits


def draw_periodic(rng, count, choices=10):
    """Draws two to four digits that repeat: 1 2 3 1 2 3 1."""
    period = rng.integers(0, choices, rng.integers(2, 5))
    return np.resize(period, count).tolist()


def draw_palindrome(rng, count, choices=10):
    """Draws digits that read the same in both directions: 3 1 4 1 3."""
    half = draw_uniform(rng, (count + 1) // 2, choices)
    return half + half[: count // 2][::-1]


STYLES = (draw_uniform, draw_repeated, draw_few, draw_sparse)
"""Functions that draw a part."""


def draw_parts(rng, count, choices=10, relations=(), rows=2):
    """Draws digits in one to three parts, each with a structure of its own.

    Args:
        rng: `numpy.random.Generator`.
        count: int. Number of digits.
        choices: int. Number of digits to draw from.
        relations: Tuple of functions of the generator and the digits of a
            part, which return the same part of a further row of digits; one of
            them is chosen for each part.
        rows: int, at least 2. Number of rows of digits with relations.

    Returns:
        List of int; with relations, a tuple of `rows` of them.
    """
    first, *others = ([] for _ in range(rows))
    for size in _split(rng, count, int(rng.integers(1, min(3, count) + 1))):
        part = _choose(rng, STYLES)(rng, size, choices)
        first += part
        if relations:
            relation = _choose(rng, relations)
            for row in others:
                row += relation(rng, part)
    return (first, *others) if relations else first


def repeat_digits(rng, digits):
    """Returns the same digits."""
    return list(digits)


def complement_digits(rng, digits):
    """Returns the digits that make each a nine."""
    return [9 - digit for digit in digits]


def draw_other(rng, digits):
    """Draws digits with a structure of their own."""
    return draw_parts(rng, len(digits))


def _choose(rng, functions):
    return functions[rng.integers(len(functions))]


def _split(rng, count, parts):
    """Returns the sizes of random parts, each at least 1."""
    cuts = np.sort(rng.choice(count - 1, parts - 1, replace=False)) + 1
    return np.diff([0, *cuts, count]).tolist()


def draw_terms(rng, count, terms=2):
    """Draws numbers in parts that are independent, equal or complementary.

    Args:
        rng: `numpy.random.Generator`.
        count: int. Number of digits of each, zeros before the first included.
        terms: int, at least 2. Number of numbers.

    Returns:
        Tuple of lists of int, the digits.
    """
    relations = (draw_other, draw_other, repeat_digits, complement_digits)
    drawn = draw_parts(rng, count, relations=relations, rows=terms)
    return drawn if rng.random() < 0.5 else drawn[::-1]


def as_number(rng, digits):
    """Returns the number of some digits, the first one not zero.

    A first zero becomes a random digit, but for a number of one digit.
    """
    first, *rest = digits
    if not first and rest:
        first = int(rng.integers(1, 10))
    return int("".join(map(str, [first, *rest])))


def _draw_all(draw):
    """Returns a function that draws numbers of the same kind."""

    def draw_numbers(rng, count, terms=2):
        return tuple(as_number(rng, draw(rng, count)) for _ in range(terms))

    return draw_numbers


def _draw_round(rng, count):
    """Draws one or two digits, then zeros: 2 5 0 0."""
    kept = min(count, int(rng.integers(1, 3)))
    return draw_uniform(rng, kept) + [0] * (count - kept)


def _draw_equal(rng, count, terms=2):
    return (as_number(rng, draw_uniform(rng, count)),) * terms


def _draw_complementary(rng, count, terms=2):
    """Draws numbers whose sum has only nines, without a carry."""
    first = int(rng.integers(1, 9)), *draw_uniform(rng, count - 1)
    numbers, rest = [as_number(rng, first)], complement_digits(rng, first)
    for _ in range(terms - 2):
        part = [int(rng.integers(digit + 1)) for digit in rest]
        numbers.append(int("".join(map(str, part))))
        rest = [all_ - some for all_, some in zip(rest, part, strict=True)]
    return *numbers, int("".join(map(str, rest)))


def _draw_full_carry(rng, count, terms=2):
    """Draws numbers whose sum is a power of ten."""
    *numbers, last = _draw_complementary(rng, count, terms)
    return *numbers, last + 1


def _draw_nines(rng, count, terms=2):
    """Draws numbers of nines, or all but one or more of them 1."""
    every = itertools.product((10**count - 1, 1), repeat=terms)
    return _choose(rng, list(every)[:-1])


def _draw_powers(rng, count, terms=2):
    """Draws a power of ten, and the same or any smaller ones."""
    power = 10 ** (count - 1)
    return power, *(
        _choose(rng, [power, 10 ** int(rng.integers(count))])
        for _ in range(terms - 1)
    )


def _draw_shorter(rng, count, terms=2):
    """Draws uniform numbers, all but the first with fewer digits."""
    fewer = rng.integers(1, max(count, 2), terms - 1).tolist()
    return tuple(
        as_number(rng, draw_uniform(rng, digits)) for digits in (count, *fewer)
    )


UNIFORM = "uniform"
"""Name of the kind of uniform digits."""

DIGITS_OF_KIND = {
    UNIFORM: draw_uniform,
    "repeated_digit": draw_repeated,
    "few_digits": draw_few,
    "mostly_zeros": draw_sparse,
    "runs": draw_runs,
    "periodic": draw_periodic,
    "palindrome": draw_palindrome,
}
"""Dict from kinds to functions of a generator, a count and `choices`."""

TERMS_OF_KIND = {
    **{kind: _draw_all(draw) for kind, draw in DIGITS_OF_KIND.items()},
    "round": _draw_all(_draw_round),
    "equal": _draw_equal,
    "complementary": _draw_complementary,
    "full_carry": _draw_full_carry,
    "nines": _draw_nines,
    "powers_of_ten": _draw_powers,
    "shorter_second": _draw_shorter,
}
"""Dict from kinds to functions of a generator, a number of digits, and how many
numbers to draw."""


def _draw_factor(rng, most):
    """Draws a uniform factor."""
    return int(rng.integers(most + 1))


def _draw_usual_factor(rng, most):
    """Draws a factor that people often type."""
    usual = (0, 1, 2, 5, 9, 10, 11, 12, 20, 25, 50, 90, 99)
    return int(rng.choice([factor for factor in usual if factor <= most]))


FACTORS_OF_KIND = {
    **{kind: (draw, _draw_factor) for kind, draw in DIGITS_OF_KIND.items()},
    "round": (_draw_round, _draw_factor),
    "nines": (lambda rng, count: [9] * count, _draw_factor),
    "powers_of_ten": (lambda rng, count: [1] + [0] * (count - 1), _draw_factor),
    "usual_factor": (draw_uniform, _draw_usual_factor),
    "nines_usual_factor": (lambda rng, count: [9] * count, _draw_usual_factor),
}
"""Dict from kinds to pairs: a function of a generator and a count that draws
the digits of a number, and one of a generator and the largest factor."""
