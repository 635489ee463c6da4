"""Files that one process at a time may claim, on any machine.

A claim is a lock (`flock`) on a file that says who holds it. The kernel frees
it when the process that holds it ends in any way. Commands may inherit it: it
then lasts until they have ended, even if whoever started them was killed.

On network file systems this relies on their locks between machines: NFS 4,
Lustre (mounted with `flock`), CephFS and GPFS have them. Where locks only hold
within a machine, as on NFS mounted with `local_lock` and on mounted buckets,
only processes of the same machine are noticed.

Imports only the standard library and `datasets.files`, as `sweeps/work.py`.
"""

import contextlib
import dataclasses
import datetime
import errno
import fcntl
import json
import os
import socket
import typing

from datasets.files import no_links, only_files


class NoLocksError(OSError):
    """The file system has no locks."""


@dataclasses.dataclass(frozen=True)
class Claim:
    """A claim that this process holds.

    Attributes:
        file: The open file.
        was_left: bool. Whether the process that held it before was killed.
    """

    file: typing.TextIO
    was_left: bool


@contextlib.contextmanager
def claim(path, about=None):
    """Holds the lock of a file that exists as long as somebody holds it.

    Args:
        path: `pathlib.Path` of the file.
        about: Dict of what the file says beside the host, the process and the
            time, or `None`.

    Yields:
        The `Claim`, or `None` if another process has the lock.

    Raises:
        NoLocksError: If the file system has no locks.
        OSError: If the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        file = _open(path)
        try:
            if not _lock(file):
                file.close()
                yield None
                return
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    break
        except OSError:
            file.close()
            raise
        # Whoever had the lock has removed the file.
        file.close()
    with file:
        was_left = file.tell() > 0
        file.truncate(0)
        holder = {
            "host": socket.gethostname(),
            "process": os.getpid(),
            "started": now(),
        }
        file.write(json.dumps({**holder, **(about or {})}))
        file.flush()
        try:
            yield Claim(file, was_left)
        finally:
            with contextlib.suppress(OSError):
                path.unlink()


def _open(path):
    return open(path, "a+", opener=no_links)


def is_locked(path):
    """Returns whether a process holds the lock of a file."""
    try:
        with open(path, "r+", opener=no_links) as file:
            return not _lock(file)
    except FileNotFoundError:
        return False


def read_claim(path):
    """Returns what a claimed file says; `None` if nobody holds its lock.

    An empty dict if whoever holds the lock has not written yet.
    """
    if not is_locked(path):
        return None
    with contextlib.suppress(FileNotFoundError, ValueError):
        about = json.loads(read_text(path))
        if isinstance(about, dict):
            return about
    return {}


def is_orphan(about):
    """Returns whether a claim is of a process of this machine that is gone.

    The command that the process started runs on and holds the lock.

    Args:
        about: Dict, from `read_claim`; or `None`: nobody holds it.
    """
    about = about or {}
    process = about.get("process")
    if about.get("host") != socket.gethostname() or not isinstance(
        process, int
    ):
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    return False


def _lock(file):
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise NoLocksError(error.errno, error.strerror) from None


def read_text(path):
    """Returns the text of a regular file."""
    with open(path, opener=only_files) as file:
        return file.read()


def now():
    """Returns the time as a str that sorts by time."""
    time_now = datetime.datetime.now(datetime.UTC)
    return time_now.strftime("%Y-%m-%d %H:%M:%S UTC")
