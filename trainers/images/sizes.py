"""Sizes of images on the command line."""

import re

from keras_lengen.layers import GridPositions
from trainers.engine.evaluation_sizes import PROGRAMS
from trainers.errors import ConfigError
from trainers.options.choices import described
from trainers.options.lengths import MAX_LENGTH

MAX_SIZES = PROGRAMS
"""Largest number of sizes: images are not padded, so each has a program."""

_SIZE = re.compile(r"\s*(\d{1,7})x(\d{1,7})\s*", re.ASCII)


def parse_sizes(flag, text):
    """Parses sizes such as `22x22,45x44`, heights before widths.

    Args:
        flag: str. Name of the flag, for the message.
        text: str. Sizes.

    Returns:
        Dict from numbers of tokens, increasing, to pairs of height and width.
        Each row of pixels has a delimiter, so an image has
        `height * (width + 1)` tokens.

    Raises:
        ConfigError: If the text has another form, if there are too many sizes
            or too large ones, or if two have the same number of tokens.

    >>> parse_sizes("--test_sizes", "45x44,22x22")
    {506: (22, 22), 2025: (45, 44)}
    """
    matches = [_SIZE.fullmatch(part) for part in text.split(",")]
    sizes = [tuple(map(int, m.groups())) if m else (0, 0) for m in matches]
    if not all(
        height and width and height * (width + 1) <= MAX_LENGTH
        for height, width in sizes
    ):
        raise ConfigError(
            f"{flag} takes heights and widths, as 22x22 or 22x22,45x44, with "
            f"up to {MAX_LENGTH:,} tokens; got {described(text)}."
        )
    return merge_sizes(*({h * (w + 1): (h, w)} for h, w in sizes))


def merge_sizes(*parts):
    """Merges sizes by their numbers of tokens, increasing.

    Args:
        *parts: Dicts from numbers of tokens to pairs of height and width.

    Raises:
        ConfigError: If there are too many sizes, or if two have the same
            number of tokens.
    """
    merged: dict = {}
    for tokens, size in (item for part in parts for item in part.items()):
        other = merged.setdefault(tokens, size)
        if other != size:
            raise ConfigError(
                f"images of {format_size(other)} and of {format_size(size)} "
                f"pixels both have {tokens} tokens, by which results are told "
                "apart: remove one size."
            )
    if len(merged) > MAX_SIZES:
        raise ConfigError(
            f"{len(merged)} sizes of images are given, each of which has a "
            f"program: choose at most {MAX_SIZES}."
        )
    return dict(sorted(merged.items()))


def format_size(size):
    """Returns a size as `22x22`."""
    height, width = size
    return f"{height}x{width}"


def check_grid(encoding, sizes):
    """Raises `ConfigError` if positions of a grid are not those of the images.

    Args:
        encoding: Encoding of the model.
        sizes: Dict from numbers of tokens to pairs of height and width.
    """
    grid = encoding.sampler
    if not isinstance(grid, GridPositions):
        return
    for tokens, size in sizes.items():
        rows, columns = grid.shape(tokens)
        if (rows, columns) != (size[0], size[1] + 1):
            remedy = (
                "remove its width, which is then counted"
                if grid.width
                else "choose sizes that are more nearly square"
            )
            raise ConfigError(
                f"GridPositions sees {rows} rows of {columns} tokens in images "
                f"of {format_size(size)} pixels with delimiters: {remedy}."
            )
