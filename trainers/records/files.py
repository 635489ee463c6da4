"""Files that exist as a whole or not at all."""

import contextlib

from trainers.errors import TrainingError


@contextlib.contextmanager
def writing(path, consequence="what was there before is whole"):
    """Turns a failure to write, such as a full disk, into `TrainingError`."""
    try:
        yield
    except OSError as error:
        raise TrainingError(
            f"cannot write {path}: {error.strerror or error}; {consequence}. "
            "Fix this and run the same command again to resume."
        ) from None
