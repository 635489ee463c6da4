"""Files that exist as a whole or not at all, also after a loss of power."""

import contextlib
import os

from datasets.files import no_links, only_files
from trainers.errors import ConfigError, TrainingError


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


@contextlib.contextmanager
def replacing(path, consequence="what was there before is whole"):
    """Opens a binary file that takes the place of `path` when it is on disk.

    Args:
        path: `pathlib.Path` of the file to replace or to create.
        consequence: str. What a failure means, for the message.

    Raises:
        TrainingError: If it cannot be written.
    """
    beside = path.with_name(f"{path.name}.partial")
    with writing(path, consequence):
        # What is no file, such as a link or a directory, is not ours.
        with open(beside, "wb", opener=no_links) as file:
            try:
                yield file
                sync(file)
                os.replace(beside, path)
            finally:
                beside.unlink(missing_ok=True)
        # The name is on disk when its directory is.
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


@contextlib.contextmanager
def appending(path):
    """Opens a text file that is there, and puts what is added on disk.

    Raises:
        TrainingError: If it is gone, or cannot be written.
    """

    def open_existing(path, flags):
        return only_files(path, flags & ~os.O_CREAT)

    with (
        writing(path, "earlier lines and checkpoints are whole"),
        open(path, "a", newline="", opener=open_existing) as file,
    ):
        yield file
        sync(file)


def sync(file):
    """Returns when the content of an open file is on disk."""
    file.flush()
    os.fsync(file.fileno())


def read_bytes(path):
    """Returns the content of a file; `None` if nothing is there.

    Raises:
        ConfigError: If it cannot be read, as a directory or a pipe.
    """
    try:
        with open(path, "rb", opener=only_files) as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}. Move it away, or choose "
            "another directory."
        ) from None
