"""Kinds of digits and numbers: zeros, runs, equal and complementary parts.

People write numbers like 1000, 1999 or 250000. Uniform digits hardly ever look
like these, so a model that was only trained and tested on uniform digits may
fail on them. `DIGITS_OF_KIND` and `PAIRS_OF_KIND` list the kinds of problems
to evaluate; training draws `draw_parts` and `draw_pair`.
"""

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


def draw_parts(rng, count, choices=10, relations=()):
    """Draws digits in one to three parts, each with a structure of its own.

    Args:
        rng: `numpy.random.Generator`.
        count: int. Number of digits.
        choices: int. Number of digits to draw from.
        relations: Tuple of functions of the generator and the digits of a
            part, which return the same part of a second row of digits; one of
            them is chosen for each part.

    Returns:
        List of int; with relations, two of them.
    """
    first, second = [], []
    for size in _split(rng, count, int(rng.integers(1, min(3, count) + 1))):
        part = _choose(rng, STYLES)(rng, size, choices)
        first += part
        if relations:
            second += _choose(rng, relations)(rng, part)
    return (first, second) if relations else first


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


def draw_pair(rng, count):
    """Draws two numbers in parts that are independent, equal or complementary.

    Args:
        rng: `numpy.random.Generator`.
        count: int. Number of digits of both, zeros before the first included.

    Returns:
        Pair of lists of int, the digits.
    """
    relations = (draw_other, draw_other, repeat_digits, complement_digits)
    pair = draw_parts(rng, count, relations=relations)
    return pair if rng.random() < 0.5 else pair[::-1]


def as_number(rng, digits):
    """Returns the number of some digits, the first one not zero.

    A first zero becomes a random digit, but for a number of one digit.
    """
    first, *rest = digits
    if not first and rest:
        first = int(rng.integers(1, 10))
    return int("".join(map(str, [first, *rest])))


def _draw_both(draw):
    """Returns a function that draws two numbers of the same kind."""

    def draw_numbers(rng, count):
        return tuple(as_number(rng, draw(rng, count)) for _ in range(2))

    return draw_numbers


def _draw_round(rng, count):
    """Draws one or two digits, then zeros: 2 5 0 0."""
    kept = min(count, int(rng.integers(1, 3)))
    return draw_uniform(rng, kept) + [0] * (count - kept)


def _draw_equal(rng, count):
    number = as_number(rng, draw_uniform(rng, count))
    return number, number


def _draw_complementary(rng, count):
    """Draws two numbers whose sum has only nines."""
    first = int(rng.integers(1, 9)), *draw_uniform(rng, count - 1)
    return as_number(rng, first), as_number(rng, complement_digits(rng, first))


def _draw_full_carry(rng, count):
    """Draws two numbers whose sum is a power of ten."""
    first, second = _draw_complementary(rng, count)
    return first, second + 1


def _draw_nines(rng, count):
    """Draws a number of nines, and the same number or 1."""
    nines = 10**count - 1
    return _choose(rng, [(nines, nines), (nines, 1), (1, nines)])


def _draw_powers(rng, count):
    """Draws a power of ten, and the same or any smaller one."""
    power = 10 ** (count - 1)
    return power, _choose(rng, [power, 10 ** int(rng.integers(count))])


def _draw_shorter(rng, count):
    """Draws uniform numbers, the second with fewer digits."""
    fewer = int(rng.integers(1, max(count, 2)))
    return tuple(
        as_number(rng, draw_uniform(rng, digits)) for digits in (count, fewer)
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

PAIRS_OF_KIND = {
    **{kind: _draw_both(draw) for kind, draw in DIGITS_OF_KIND.items()},
    "round": _draw_both(_draw_round),
    "equal": _draw_equal,
    "complementary": _draw_complementary,
    "full_carry": _draw_full_carry,
    "nines": _draw_nines,
    "powers_of_ten": _draw_powers,
    "shorter_second": _draw_shorter,
}
"""Dict from kinds to functions of a generator and a number of digits."""
