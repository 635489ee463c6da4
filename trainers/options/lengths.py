"""Lengths on the command line."""

import re

from trainers.errors import ConfigError
from trainers.options.choices import described

MAX_LENGTH = 2**20
"""Largest length: attention to so many tokens takes hours for one example."""

MAX_LENGTHS = 5000
"""Largest number of lengths: each of them is evaluated."""

_PART = re.compile(r"\s*(\d+)(?:-(\d+)(?::(\d+))?)?\s*", re.ASCII)


def parse_lengths(name, text):
    """Parses lengths such as `256,1024`, `1-500` or `1-500:20`.

    Args:
        name: str. Name of the flag, for the message.
        text: str. Lengths and ranges of lengths, with or without a stride.

    Returns:
        Tuple of int, increasing.

    Raises:
        ConfigError: If the text has another form, or there are too many
            lengths or too long ones.

    >>> parse_lengths("--test_lengths", "3,10-20:5")
    (3, 10, 15, 20)
    """
    lengths = set()
    for part in text.split(","):
        span = _parse_span(part)
        if not span:
            raise ConfigError(
                f"{name} takes lengths from 1 to {MAX_LENGTH}, as 256,1024 or "
                f"1-500 or 1-500:20; got {described(text)}."
            )
        # Counted before the range is expanded.
        lengths.update(span[: MAX_LENGTHS + 1])
        if len(lengths) > MAX_LENGTHS:
            raise ConfigError(
                f"{name} takes at most {MAX_LENGTHS} lengths; got "
                f"{described(text)}: give ranges a stride, as 1-500:20."
            )
    return tuple(sorted(lengths))


def _parse_span(part):
    """Returns a `range` of lengths, empty if the text has another form."""
    match = _PART.fullmatch(part)
    # More digits are slow to convert, or refused by Python.
    if not match or len(part) > 100:
        return range(0)
    first, last, stride = (int(number or 0) for number in match.groups())
    last = last if match[2] else first
    stride = stride if match[3] else 1
    if not (1 <= first <= last <= MAX_LENGTH and 1 <= stride <= last):
        return range(0)
    return range(first, last + 1, stride)
