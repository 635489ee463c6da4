"""Digits, numbers and words of problems."""

import re

DIGITS = tuple("0123456789")


def spell(number):
    """Writes a number digit by digit, a minus sign before the digits.

    >>> spell(-120)
    '- 1 2 0'
    """
    return " ".join(str(number))


def read_number(words):
    """Reads a number that is written digit by digit.

    >>> read_number(["-", "1", "2"])
    -12

    Returns:
        int; `None`: this is no number.
    """
    text = "".join(words)
    return int(text) if re.fullmatch(r"-?[0-9]+", text) else None


def draw_number(rng, digits):
    """Draws a uniform number of some digits; 0 has one.

    Args:
        rng: `numpy.random.Generator`.
        digits: int, at least 1.
    """
    drawn = rng.integers(0, 10, digits)
    if digits > 1:
        drawn[0] = rng.integers(1, 10)
    return int("".join(map(str, drawn)))


def make_words(count):
    """Returns words that mean nothing, each of them one token.

    >>> make_words(3)
    ('w0', 'w1', 'w2')
    """
    return tuple(f"w{number}" for number in range(count))


def read_word(words):
    """Reads a single word of `make_words`.

    >>> read_word(["w12"])
    12

    Returns:
        int, its number; `None`: this is no such word.
    """
    (word,) = words if len(words) == 1 else ("",)
    return int(word[1:]) if re.fullmatch(r"w[0-9]+", word) else None
