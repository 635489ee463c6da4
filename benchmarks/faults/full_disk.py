"""The fault that fills the file system of a run."""

import os
import pathlib
import re
import subprocess

from benchmarks.faults.run import Failure
from benchmarks.faults.training_process import find_errors

SIZE = 2**20
"""Bytes of the file system."""


def mount(path):
    """Mounts a small file system; needs root.

    Returns:
        The reason why it cannot be mounted, or `None`.
    """
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "drill", path]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        return str(error)
    return done.stderr.strip() or None


def unmount(path):
    """Unmounts the file system."""
    subprocess.run(["umount", path], check=True)


def fill_disk(run, process):
    """Fills the file system of a run except for a few bytes.

    Returns:
        How the run ended.
    """
    ballast = run.path.parent / "ballast"
    # Sometimes enough for everything except the next checkpoint.
    room = run.rng.randrange(28_000)
    try:
        with ballast.open("wb", buffering=0) as file:
            while file.write(bytes(2**16)):
                pass
    except OSError:
        os.truncate(ballast, max(0, ballast.stat().st_size - room))
    status = process.wait()
    try:
        if status == 0:
            return "ran to its end"
        return _read_error(run, process.output, status)
    finally:
        ballast.unlink()


def _read_error(run, output, status):
    """Reads what the run could not write from its error message."""
    errors = find_errors(output)
    # Exit status 2: the run could not even start.
    early = run.find_moment(output) == "starting"
    named = re.fullmatch(
        "error: cannot write (?:to (--workdir)=)?(.+?): No space left.*",
        "; ".join(errors),
    )
    if not named or len(errors) > 1 or status != (2 if early else 1):
        raise Failure(f"exit status {status} on a full disk: {errors}")
    file = named[1] or re.sub(r"\d+", "N", pathlib.Path(named[2]).name)
    return f"said that it cannot write {file}"
