"""The fault that starts a run a second time while it goes on."""

import json
import time

from benchmarks.faults.run import Failure
from benchmarks.faults.training_process import PATIENCE, find_errors


def start_second(run, process):
    """Starts the command again while its first process goes on.

    Returns:
        What the second process said; `None` if the first one ended before it
        held the lock.
    """
    if not _wait_for_lock(run, process):
        return None
    second = run.start_second()
    try:
        status = second.wait()
    finally:
        second.end()
    errors = find_errors(second.output)
    first = process.wait(0)
    if first not in (None, 0):
        raise Failure(f"exit status {first} of the first of two processes")
    used = f"error: {run.path} is in use by"
    if status == 2 and len(errors) == 1:
        if errors[0].startswith(f"{used} process {process.pid} on "):
            return "refused: in use by the first"
        # The first empties the file of its lock before it frees the lock.
        leaving = errors[0].startswith(f"{used} another process: ")
        if leaving and process.wait() == 0:
            return "refused: the first was finishing"
    finished = "already finished" in second.output
    if status == 0 and not errors and finished and process.wait() == 0:
        return "already finished"
    raise Failure(f"exit status {status} of a second process: {errors}")


def _wait_for_lock(run, process):
    """Waits until the process holds the lock; returns whether it does."""
    until = time.monotonic() + PATIENCE
    while process.wait(0.002) is None and time.monotonic() < until:
        try:
            holder = json.loads((run.path / "run.lock").read_text())
        except (FileNotFoundError, ValueError):
            continue
        if holder["process"] == process.pid:
            return True
    return False
