"""Components of a data set of labelled images."""

import contextlib
import dataclasses
import pathlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np


class ImageError(Exception):
    """Images are missing or damaged; the message says what to do."""


@contextlib.contextmanager
def reading_files():
    """Names a file that cannot be read, by `ImageError`."""
    try:
        yield
    except OSError as error:
        raise ImageError(
            f"cannot read {error.filename}: {error.strerror}."
        ) from None


def describe_files(root, files):
    """Describes files for a `Source`.

    Args:
        root: `pathlib.Path` of a directory.
        files: List of str. Paths of the files below it.

    Returns:
        Dict with `identity`, made of their names and sizes, and `version`, of
        their directory and the times at which they changed.
    """
    found = [(root / file).stat() for file in files]
    return {
        "identity": "\n".join(
            f"{file} {status.st_size}"
            for file, status in zip(files, found, strict=True)
        ),
        "version": "\n".join(
            [
                str(root.resolve()),
                *(str(status.st_mtime_ns) for status in found),
            ]
        ),
    }


def check_directory(data_dir, need):
    """Returns the path of a directory of images.

    Args:
        data_dir: str. Path of the directory.
        need: str. The option and the directory that it needs, for the message.

    Raises:
        ImageError: If there is none.
    """
    path = pathlib.Path(data_dir)
    if not data_dir or not path.is_dir():
        raise ImageError(f"{need}; --data_dir={data_dir} is none.")
    return path


class Item(NamedTuple):
    """A labelled image that is not decoded yet.

    Attributes:
        name: str. Where the image is, for messages.
        content: The encoded image, the path of its file, or decoded pixels, a
            uint8 array `(H, W)`.
        label: int, from 0. Its class.
    """

    name: str
    content: bytes | pathlib.Path | np.ndarray
    label: int


@dataclasses.dataclass(frozen=True)
class Source:
    """The images of a split.

    Attributes:
        name: str. Data set and split, for messages and names of files.
        read: Function that returns the `Item`s, always in the same order.
        identity: str. Differs where other images are read.
        version: str. Differs where their files are other ones, or have changed.
        count: int. Number of images; `None`: known only when all are read.
        empty_classes: Tuple of str. Names of classes without images.
        in_memory: bool. Whether decoded images are kept in memory, because
            they are few, and not in files.
    """

    name: str
    read: Callable[[], Iterator[Item]]
    identity: str
    version: str = ""
    count: int | None = None
    empty_classes: tuple = ()
    in_memory: bool = False


@dataclasses.dataclass(frozen=True)
class Images:
    """A data set of images.

    Attributes:
        open: Function of a directory, `""` for none; returns the `Source`s of
            the splits `"train"` and `"test"`. Raises `ImageError` if the data
            are not there.
        count_classes: Function of a directory; returns the number of classes.
    """

    open: Callable[[str], dict]
    count_classes: Callable[[str], int]
