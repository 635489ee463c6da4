"""Lengths as a user types them."""

from trainers.errors import ConfigError


def parse_lengths(name, text):
    """Returns the lengths of `256,1024`, `1-500` or `1-500:20`, increasing.

    Args:
        name: Name of the flag, for the message.
        text: Lengths and ranges of them, a range with a stride or without.

    Raises:
        ConfigError: If it is something else.

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
