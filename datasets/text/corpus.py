"""Bytes of files as one sequence that is read in windows, never as a whole."""

import dataclasses
import pathlib

import numpy as np
import tensorflow as tf


class CorpusError(Exception):
    """A corpus is missing or changed; the message says what to do."""


@dataclasses.dataclass(frozen=True)
class Part:
    """Bytes of a file.

    Attributes:
        path: `pathlib.Path` of the file.
        start: int. Index of the first byte.
        stop: int. One more than the index of the last byte.
    """

    path: pathlib.Path
    start: int
    stop: int


class Corpus:
    """The bytes of several parts of files, one after the other.

    Args:
        parts: List of `Part`s, in order.

    >>> import tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "text"
    >>> _ = path.write_bytes(b"abcdef")
    >>> corpus = Corpus([Part(path, 0, 2), Part(path, 4, 6)])
    >>> len(corpus)
    4
    >>> bytes(corpus.read(1, 2))
    b'be'
    """

    begin = 256
    """Id of the symbol before the first byte of a window."""
    vocabulary_size = 257
    """Number of ids that a model reads, `begin` included."""

    def __init__(self, parts):
        self._parts = [part for part in parts if part.stop > part.start]
        sizes = [part.stop - part.start for part in self._parts]
        self._ends = np.cumsum(sizes)

    def __len__(self):
        return int(self._ends[-1]) if len(self._ends) else 0

    def read(self, start, size):
        """Reads bytes.

        Args:
            start: int, at least 0. Index of the first byte.
            size: int. Number of bytes, all inside the corpus.

        Returns:
            NumPy array `(size,)`, uint8.

        Raises:
            CorpusError: If a file is shorter than it was.
        """
        found = np.empty(size, np.uint8)
        view, done = memoryview(found), 0
        number = int(np.searchsorted(self._ends, start, side="right"))
        while done < size:
            part = self._parts[number]
            before = self._ends[number] - (part.stop - part.start)
            first = part.start + start + done - int(before)
            wanted = min(part.stop - first, size - done)
            with part.path.open("rb", buffering=0) as file:
                file.seek(first)
                read = file.readinto(view[done : done + wanted])
            if read < wanted:
                raise CorpusError(
                    f"{part.path} ends after {first + read} bytes, and had "
                    f"{part.stop} when it was opened: restore it."
                )
            done += wanted
            number += 1
        return found

    def read_windows(self, starts, size):
        """Reads windows of equal size, with zeros beyond the end.

        Args:
            starts: int64 tensor `(B,)`. Index of the first byte of each.
            size: int or scalar int tensor T. Number of bytes of each.

        Returns:
            int32 tensor `(B, T)`, from 0 to 255.
        """

        def read(starts, size):
            windows = np.zeros((len(starts), size), np.uint8)
            for window, start in zip(windows, starts.tolist(), strict=True):
                inside = max(min(len(self) - start, int(size)), 0)
                window[:inside] = self.read(start, inside)
            return windows

        windows = tf.numpy_function(read, [starts, size], tf.uint8)
        shape = (starts.shape[0], tf.get_static_value(size))
        return tf.cast(tf.ensure_shape(windows, shape), tf.int32)
