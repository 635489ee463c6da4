"""Bytes or tokens of files as one sequence that is read in windows."""

import dataclasses
import functools
import hashlib
import pathlib

import numpy as np
import tensorflow as tf

from datasets.files import only_files


class CorpusError(Exception):
    """A corpus is missing or changed; the message says what to do."""


_CHUNK = 2**20
"""Number of items that are read at once for the digest."""


@dataclasses.dataclass(frozen=True)
class Part:
    """Items of a file, which are bytes or tokens.

    Attributes:
        path: `pathlib.Path` of the file.
        start: int. Index of the first item.
        stop: int. One more than the index of the last item.
    """

    path: pathlib.Path
    start: int
    stop: int


class ByteVocabulary:
    """Bytes as ids of tokens, and one id more for the symbol before a text.

    Attributes:
        begin: int. Id of the symbol before a text.
        size: int. Number of ids, `begin` included.
    """

    begin = 256
    size = 257

    def tokenize(self, text):
        """Returns the bytes of a string, a NumPy array."""
        encoded = text.encode(errors="surrogateescape")
        return np.frombuffer(encoded, np.uint8)

    def detokenize(self, ids):
        """Returns the string of bytes."""
        return bytes(list(ids)).decode(errors="replace")


BYTES = ByteVocabulary()


class Corpus:
    """The items of several parts of files, one after the other.

    Items are bytes, or the ids of tokens of a vocabulary. Their number is
    `len(corpus)`.

    Args:
        parts: List of `Part`s, in order.
        dtype: Unsigned integer type of an item in the files.
        vocabulary: The vocabulary of the items, such as `BYTES`.
        words: int. Number of words of the text that the items stand for, for
            the loss per word; `None`: not counted.

    Attributes: the arguments of the same names, except `parts`.

    >>> import tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "text"
    >>> _ = path.write_bytes(b"abcdef")
    >>> corpus = Corpus([Part(path, 0, 2), Part(path, 4, 6)])
    >>> len(corpus)
    4
    >>> bytes(corpus.read(1, 2))
    b'be'
    """

    def __init__(
        self,
        parts,
        *,
        dtype=np.uint8,
        vocabulary=BYTES,
        words=None,
    ):
        self._parts = [part for part in parts if part.stop > part.start]
        sizes = [part.stop - part.start for part in self._parts]
        self._ends = np.cumsum(sizes)
        self.dtype = np.dtype(dtype)
        self.vocabulary = vocabulary
        self.words = words

    @functools.cached_property
    def digest(self):
        """Bytes that differ where this is another text, wherever it is."""
        found = hashlib.sha256(f"{len(self)} {self.dtype}".encode())
        for start in range(0, len(self), _CHUNK):
            found.update(self.read(start, min(_CHUNK, len(self) - start)))
        return found.digest()

    def __len__(self):
        return int(self._ends[-1]) if len(self._ends) else 0

    def read(self, start, size):
        """Reads items.

        Args:
            start: int, at least 0. Index of the first item.
            size: int. Number of items, all inside the corpus.

        Returns:
            NumPy array `(size,)` of type `dtype`.

        Raises:
            CorpusError: If a file cannot be read, or is shorter than it was.
        """
        found, item = np.empty(size, self.dtype), self.dtype.itemsize
        view, done = memoryview(found.view(np.uint8)), 0
        number = int(np.searchsorted(self._ends, start, side="right"))
        while done < size:
            part = self._parts[number]
            before = self._ends[number] - (part.stop - part.start)
            first = part.start + start + done - int(before)
            wanted = min(part.stop - first, size - done)
            target = view[done * item : (done + wanted) * item]
            read = _read_at(part.path, first * item, target)
            if read < wanted * item:
                raise CorpusError(
                    f"{part.path} ends after {first * item + read} bytes, and "
                    f"had {part.stop * item} when it was opened: restore it."
                )
            done += wanted
            number += 1
        return found

    def read_windows(self, starts, size):
        """Reads windows of equal size, with zeros beyond the end.

        Args:
            starts: int64 tensor `(B,)`. Index of the first item of each.
            size: int or scalar int tensor T. Number of items of each.

        Returns:
            int32 tensor `(B, T)`.
        """

        def read(starts, size):
            windows = np.zeros((len(starts), size), self.dtype)
            for window, start in zip(windows, starts.tolist(), strict=True):
                inside = max(min(len(self) - start, int(size)), 0)
                window[:inside] = self.read(start, inside)
            return windows

        windows = tf.numpy_function(
            read, [starts, size], tf.as_dtype(self.dtype)
        )
        shape = (starts.shape[0], tf.get_static_value(size))
        return tf.cast(tf.ensure_shape(windows, shape), tf.int32)


def _read_at(path, start, target):
    """Reads bytes from `start` on into a buffer; returns their number."""
    try:
        with open(path, "rb", buffering=0, opener=only_files) as file:
            file.seek(start)
            return file.readinto(target)
    except OSError as error:
        raise CorpusError(
            f"cannot read {path} any more ({error.strerror}): restore it."
        ) from None
