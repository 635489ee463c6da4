"""One run a directory: a lock that ends with its process.

The lock is `flock` on `run.lock`. The kernel frees it when the process that
holds it ends in any way. On network file systems this relies on their locks
between machines: NFS 4, Lustre (mounted with `flock`), CephFS and GPFS have
them. Where locks hold within a machine alone, as on NFS mounted with
`local_lock` and on mounted buckets, only a second run on the same machine is
noticed.
"""

import contextlib
import datetime
import errno
import fcntl
import json
import os
import socket

from datasets.files import no_links
from trainers.errors import ConfigError


@contextlib.contextmanager
def lock_directory(path):
    """Holds the exclusive lock of a working directory.

    Args:
        path: `pathlib.Path` of the directory, which exists.

    Raises:
        ConfigError: If another process holds the lock, or the file system has
            no locks.
        OSError: If the file of the lock cannot be written.
    """
    # Not "w", which would empty the file of the process that holds the lock.
    with open(path / "run.lock", "a+", opener=no_links) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise ConfigError(
                    f"the file system of {path} has no locks "
                    f"({error.strerror}), so that two runs could write there "
                    "at once: choose a --workdir on another one."
                ) from None
            raise ConfigError(
                f"{path} is in use by {_read_holder(file)}: wait for its end, "
                "or choose another --workdir."
            ) from None
        _write(file, json.dumps(_describe_this_process()))
        try:
            yield
        finally:
            # The file stays: another process may wait with it open.
            with contextlib.suppress(OSError):
                _write(file, "")


def _write(file, text):
    file.truncate(0)
    file.write(text)
    file.flush()


def _describe_this_process():
    now = datetime.datetime.now(datetime.UTC)
    return {
        "host": socket.gethostname(),
        "process": os.getpid(),
        "started": now.strftime("%Y-%m-%d %H:%M:%S UTC"),
    }


def _read_holder(file):
    file.seek(0)
    try:
        holder = json.loads(file.read())
        return (
            f"process {holder['process']} on {holder['host']}, which started "
            f"at {holder['started']}"
        )
    except (OSError, ValueError, KeyError, TypeError):
        # Between locking and writing.
        return "another process"
