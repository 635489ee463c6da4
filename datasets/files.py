"""Opens regular files only, and writes files completely or not at all.

`only_files` and `no_links` are openers: `open(path, "rb", opener=only_files)`.
"""

import contextlib
import errno
import hashlib
import os
import stat
import uuid


def only_files(path, flags):
    """Opens a regular file, and refuses pipes and devices.

    Raises:
        OSError: If it is something else.
    """
    # Opening a pipe would wait for a process at its other end.
    flags |= os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o666)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(
            errno.EISDIR, os.strerror(errno.EISDIR), str(path)
        )
    raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def no_links(path, flags):
    """Opens a regular file of this very name, whatever a link points to.

    Raises:
        OSError: If it is something else, such as a symbolic link.
    """
    try:
        return only_files(path, flags | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno != errno.ELOOP or not os.path.islink(path):
            raise
        name = os.path.basename(path)
        raise OSError(
            errno.ELOOP, f"{name} is a symbolic link: remove it", str(path)
        ) from None


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
        with beside.open("xb") as file:
            yield file
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def hash_file(path, algorithm="sha256"):
    """Returns the SHA-256 or another hash of a regular file, in hexadecimal.

    Raises:
        OSError: If it cannot be read.
    """
    with open(path, "rb", opener=only_files) as file:
        return hashlib.file_digest(file, algorithm).hexdigest()
