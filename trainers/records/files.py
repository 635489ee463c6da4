"""Files that are whole or not there."""

import contextlib

from trainers.errors import TrainingError


@contextlib.contextmanager
def writing(path, consequence="what was there before is whole"):
    """Turns a full disk and the like into a `TrainingError` that says so."""
    try:
        yield
    except OSError as error:
        raise TrainingError(
            f"cannot write {path}: {error.strerror or error}; {consequence}. "
            "Fix this and run the same command again to resume."
        ) from None
