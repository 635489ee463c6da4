"""Files that are written as a whole or not at all."""

import contextlib
import hashlib
import uuid


@contextlib.contextmanager
def write_whole(path):
    """Opens a new file that gets its name when all of it has been written.

    Several processes may write the same file at the same time.

    Args:
        path: `pathlib.Path` of the file.

    Yields:
        Binary file. If the block raises, nothing remains of it.
    """
    beside = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
    try:
        with beside.open("wb") as file:
            yield file
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def hash_file(path, algorithm="sha256"):
    """Returns the SHA-256 or another hash of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()
