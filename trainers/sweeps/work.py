"""Executes the command of one run of a sweep in a separate process.

Imports only the standard library and `datasets.files`: on other machines, Ray
calls these functions in its own processes, without TensorFlow.

A root directory has for each run, by its name:

    runs/NAME        the working directory of the run
    runs/NAME.log    what its command prints
    runs/NAME.json   how its process ended, see `run_job`
    running/NAME      who runs it, while somebody does

A lock on the last file keeps a second process from starting the same run. The
command inherits the lock: it lasts until the command has ended, even if the
sweep was killed before.
"""

import contextlib
import dataclasses
import datetime
import errno
import fcntl
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

from datasets.files import no_links, only_files

LAST_LINES = 20
"""Most lines of a log that a record keeps."""

STOP_SECONDS = 1
"""Seconds between two looks for the file that stops a job."""

RECORD_TYPES = {
    "status": int,
    "seconds": (int, float),
    "ended": str,
    "host": str,
    "lines": list,
}
"""Types of the fields of a record; a field of another type is ignored."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """A command to run.

    Attributes:
        name: str. Name of the run.
        root: str. Absolute path of the root directory.
        arguments: Tuple of str. The module, and its flags.
        directory: str. Directory to run the command in.
        environment: Dict of environment variables to set.
        since: str. When the sweep began, as `now` returns it: a failure after
            that is not repeated.
        stop: str. Path of a file: as soon as it exists, the run saves its
            state and ends. Empty: there is none.
    """

    name: str
    root: str
    arguments: tuple
    directory: str
    environment: dict
    since: str
    stop: str = ""

    @property
    def workdir(self):
        """`pathlib.Path` of the working directory of the run."""
        return pathlib.Path(self.root, "runs", self.name)


def run_job(job, environment=None, started=lambda process: None):
    """Runs the command of a job, unless it is running or has ended well.

    Args:
        job: The `Job`.
        environment: Dict of further environment variables, or `None`.
        started: Called with the `subprocess.Popen` of the command.

    Returns:
        Dict, the record of the run: `status`, that of the process, negative
        for a signal; `seconds`, the time of all its processes; `ended`; `host`
        and `lines`, the last ones of the log. Or `{"busy": True}` if another
        process runs it.

    Raises:
        OSError: If the files of the run cannot be written.
    """
    workdir = job.workdir
    workdir.parent.mkdir(parents=True, exist_ok=True)
    variables = {**os.environ, **(environment or {})}
    about = {
        "stop": job.stop,
        "devices": variables.get("CUDA_VISIBLE_DEVICES"),
    }
    with claim(find_claim(job), about) as claimed:
        if claimed is None or is_locked(workdir / "run.lock"):
            return {"busy": True}
        # Under the lock: a sweep that is stopped waits for those who hold one.
        if job.stop and os.path.exists(job.stop):
            return {"status": -1}
        before = read_record(job.root, job.name)
        # Another process may have ended it since this one was asked to.
        if before.get("status") == 0 and (workdir / "results.json").exists():
            return before
        if has_failed(before) and before.get("ended", "") >= job.since:
            return before
        start = time.monotonic()
        status = _run(job, environment, started, claimed)
        record = {
            "status": status,
            "seconds": before.get("seconds", 0) + time.monotonic() - start,
            "ended": now(),
            "host": socket.gethostname(),
            "lines": _read_last_lines(_find_log(job)),
        }
        write_record(job.root, job.name, record)
        return record


def has_failed(record):
    """Returns whether a record is of a failure, not of a signal."""
    return 0 < record.get("status", 0) < 128


def _run(job, environment, started, claimed):
    """Runs the command to its end and returns its status."""
    with open(_find_log(job), "ab", opener=only_files) as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", *job.arguments),
                f"--workdir={job.workdir}",
            ],
            cwd=job.directory,
            env={**os.environ, **job.environment, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=[claimed.fileno()],
            # Ctrl-C reaches only the sweep, which stops its commands.
            start_new_session=True,
        )
        try:
            started(process)
            return _wait(process, job)
        except BaseException:
            # The run saves a checkpoint.
            process.terminate()
            process.wait()
            raise


def _wait(process, job):
    is_stopping = False
    while True:
        try:
            return process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            if not is_stopping and job.stop and os.path.exists(job.stop):
                is_stopping = True
                process.terminate()


def find_claim(job):
    """Returns the `pathlib.Path` of the file that says who runs a job."""
    return pathlib.Path(job.root, "running", job.name)


def _find_log(job):
    return job.workdir.with_name(f"{job.name}.log")


def _read_last_lines(path):
    with open(path, "rb", opener=only_files) as file:
        file.seek(max(0, path.stat().st_size - 10_000))
        text = file.read().decode(errors="replace")
    return [line for line in text.splitlines() if line.strip()][-LAST_LINES:]


@contextlib.contextmanager
def claim(path, about=None):
    """Holds the lock of a file that exists as long as somebody holds it.

    Args:
        path: `pathlib.Path` of the file.
        about: Dict of what the file says beside the host, the process and the
            time, or `None`.

    Yields:
        The open file, or `None` if another process has the lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        file = _open_claim(path)
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
        file.truncate(0)
        holder = {
            "host": socket.gethostname(),
            "process": os.getpid(),
            "started": now(),
        }
        file.write(json.dumps({**holder, **(about or {})}))
        file.flush()
        try:
            yield file
        finally:
            path.unlink(missing_ok=True)


def _open_claim(path):
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
        about = json.loads(_read_text(path))
        if isinstance(about, dict):
            return about
    return {}


def is_orphan(about):
    """Returns whether a claim is of a process of this machine that is gone.

    The command that the process started runs on and holds the lock.
    """
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
        raise


def read_record(root, name):
    """Returns the record of a run, without fields that are damaged.

    An empty dict if there is none, or none that can be read as a record.
    """
    try:
        record = json.loads(_read_text(_find_record(root, name)))
    except (FileNotFoundError, ValueError):
        return {}
    if not isinstance(record, dict):
        return {}
    return {
        field: value
        for field, value in record.items()
        if isinstance(value, RECORD_TYPES.get(field, object))
    }


def write_record(root, name, record):
    """Writes the record of a run, as a whole or not at all."""
    path = _find_record(root, name)
    beside = path.with_name(f"{path.name}.{os.getpid()}.partial")
    with open(beside, "w", opener=no_links) as file:
        file.write(json.dumps(record, indent=2) + "\n")
    os.replace(beside, path)


def _read_text(path):
    with open(path, opener=only_files) as file:
        return file.read()


def _find_record(root, name):
    return pathlib.Path(root, "runs", f"{name}.json")


def now():
    """Returns the time as a str that sorts by time."""
    time_now = datetime.datetime.now(datetime.UTC)
    return time_now.strftime("%Y-%m-%d %H:%M:%S UTC")
