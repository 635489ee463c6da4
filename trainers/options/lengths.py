"""Lengths on the command line."""

from trainers.errors import ConfigError


def parse_lengths(name, text):
    """Parses lengths such as `256,1024`, `1-500` or `1-500:20`.

    Args:
        name: str. Name of the flag, for the message.
        text: str. Lengths and ranges of lengths, with or without a stride.

    Returns:
        Tuple of int, increasing.

    Raises:
        ConfigError: If the text has another form.

    >>> parse_lengths("--test_lengths", "3,10-20:5")
    (3, 10, 15, 20)
    """
    lengths = set()
    for part in text.split(","):
        try:
            span, _, stride = part.partition(":")
            first, dash, last = span.partition("-")
            first, last = int(first), int(last if dash else first)
            lengths.update(range(first, last + 1, int(stride or 1)))
            if not 1 <= first <= last:
                raise ValueError
        except ValueError:
            raise ConfigError(
                f"{name} takes lengths from 1 up, as 256,1024 or 1-500 or "
                f"1-500:20; got {text!r}."
            ) from None
    return tuple(sorted(lengths))
