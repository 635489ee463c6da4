"""Errors that end a trainer, each with an exit status of its own."""

import contextlib
import sys

MAX_CHARACTERS = 1000
"""Largest number of characters of an error message."""


class ConfigError(Exception):
    """A mistake that is found before work starts: exit status 2."""


class OtherDataError(ConfigError):
    """The data of a run have changed since it began."""


class DataError(ConfigError):
    """Data are missing or damaged, which may change without another flag."""


class TrainingError(Exception):
    """A failure during work, reported in one message: exit status 1."""


class StoppedError(BaseException):
    """A signal stopped a run, which is saved: exit status 128 + its number.

    Raised by handlers of signals, too: no `except Exception` may swallow it.
    """

    def __init__(self, number):
        super().__init__(number)
        self.number = number


class WorkerLostError(Exception):
    """Another worker of the run is gone, and may come back."""


@contextlib.contextmanager
def as_config_errors(*kinds, becomes=ConfigError):
    """Turns errors of these kinds into `ConfigError`s with the same text.

    Args:
        *kinds: Classes of errors.
        becomes: Class of the errors raised in their place.
    """
    try:
        yield
    except kinds as error:
        raise becomes(str(error)) from None


def fail(message, status):
    """Ends the program with one line on stderr."""
    # One line, even if a value that it repeats has several.
    message = " ".join(str(message).split())
    if len(message) > MAX_CHARACTERS:
        message = f"{message[:MAX_CHARACTERS]}..."
    print(f"error: {message}", file=sys.stderr)
    sys.exit(status)
