"""Values from a list, with the nearest match of a wrong one."""

import difflib

from keras_lengen.checks.arguments import described
from trainers.errors import ConfigError


def check_choice(name, value, choices):
    """Raises `ConfigError` with the nearest match unless a value is allowed.

    Args:
        name: str. Name of the flag, for the message.
        value: str. Value of the flag.
        choices: Allowed values.
    """
    if value in choices:
        return
    called = value.partition("(")[0]
    if called in choices:
        hint = f" Give the name, {called}, without arguments."
    else:
        hint = suggest(value, choices)
    raise ConfigError(
        f"{name} must be one of {', '.join(choices)}; got {described(value)}."
        f"{hint}"
    )


def suggest(value, choices):
    """Returns a question for the choice most similar to a value, or `""`."""
    by_letters = {choice.lower(): choice for choice in choices}
    close = difflib.get_close_matches(
        # A long text is similar to no name, and slow to compare.
        value.lower()[:100],
        by_letters,
        n=1,
        cutoff=0.5,
    )
    return f" Did you mean {by_letters[close[0]]}?" if close else ""
