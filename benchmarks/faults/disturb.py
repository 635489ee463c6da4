"""Disturbs a run by faults at random moments until it ends."""

import shutil
import signal
import time

from benchmarks.faults.damage import append_nul_bytes, damage_checkpoint
from benchmarks.faults.foreign_files import place_foreign_file
from benchmarks.faults.full_disk import fill_disk
from benchmarks.faults.run import DISTURBED_FLAGS, STEPS, Failure
from benchmarks.faults.run_files import find_checkpoints
from benchmarks.faults.second_start import start_second
from benchmarks.faults.signals import kill, stop_by
from benchmarks.faults.training_process import PATIENCE
from benchmarks.faults.workers import Workers

FAULTS = {
    "sigkill": kill,
    "sigterm": stop_by(signal.SIGTERM),
    "sigint": stop_by(signal.SIGINT),
    "truncate": damage_checkpoint,
    "nul_tail": append_nul_bytes,
    "foreign_files": place_foreign_file,
    "disk": fill_disk,
    "second_start": start_second,
}
"""Functions of a `Run` and its process that return how the run ended.

`None` means that the fault had no effect.
"""
CONTINUING = {"second_start"}
"""Faults that must not end the run."""

ENDED_BY_FAULT = "ended by a fault"

AIMED = 1 / 2
"""Fraction of faults that wait until the run writes a checkpoint."""

AFTER_STEPS = 1 / 2
"""Fraction of faults that wait for a step, not for a time."""

MOST_STEPS = 60
"""Maximum number of steps between a fault and such a fault after it."""


def disturb(run, kinds, tally):
    """Disturbs a run of one process until it ends.

    Args:
        run: The `Run`.
        kinds: Kinds of faults, taken from the end of the list; those that the
            run escapes by ending early stay in the list.
        tally: The `Tally`.
    """
    lifetime = run.reference.seconds
    while True:
        process, start = run.start(), time.monotonic()
        try:
            status = _disturb_process(run, process, kinds, tally)
        finally:
            process.end()
        if status == 0:
            if len(run.logs) == 1:
                # The load on the machine changes how long a run takes.
                lifetime[process.fresh] = time.monotonic() - start
            return
        if status != ENDED_BY_FAULT:
            _remove_damaged_checkpoints(run, process, status)


def _disturb_process(run, process, kinds, tally):
    """Disturbs a process until it ends.

    Returns:
        The exit status, `None` if it hangs, or `ENDED_BY_FAULT`.
    """
    while True:
        status = _wait_for_moment(run, process) if kinds else process.wait()
        if status is None and kinds and run.rng.random() < AIMED:
            status = run.wait_for_saving(process)
        if status is not None or not kinds:
            return status
        if _apply_fault(run, process, kinds, tally) not in CONTINUING:
            return ENDED_BY_FAULT


def _wait_for_moment(run, process):
    """Waits for a random time, or for a random number of steps.

    Most of the time passes before the first step of a process.

    Returns:
        The exit status of the process, `None` if it still runs.
    """
    done = max(run.read_steps(), default=0)
    if run.rng.random() < AFTER_STEPS:
        step = done + run.rng.randint(1, MOST_STEPS)
        return run.wait_for_step(process, min(step, STEPS))
    # A run that resumes late soon ends, but starting takes its time.
    lifetime = run.reference.seconds[process.fresh] * (1 - done / STEPS / 2)
    return process.wait(run.rng.uniform(0, lifetime))


def _apply_fault(run, process, kinds, tally):
    """Applies the last of the faults; returns its kind."""
    kind, how = kinds.pop(), "failed"
    met = run.find_moment(process.output)
    try:
        how = FAULTS[kind](run, process)
        if process.wait(0) == -signal.SIGKILL:
            met = run.find_moment(process.output)
        # A process that goes on removes its older checkpoints.
        if process.wait(0) is not None:
            run.check_checkpoints()
    finally:
        if how is None:
            kinds.append(kind)
        else:
            tally.add(kind, met, how)
    return kind


def _remove_damaged_checkpoints(run, process, status):
    """Removes the checkpoints of a run if the drill has damaged all of them."""
    files = find_checkpoints(run.path).values()
    said_so = "is whole: remove it" in process.output
    if not (all(map(run.is_damaged, files)) and said_so and status == 2):
        raise Failure(f"exit status {status} without a fault")
    shutil.rmtree(run.path / "checkpoints")


def disturb_workers(run, kinds, tally):
    """Disturbs a run of two workers until it ends.

    Kills one of them at a time and starts it again after a while.
    """
    workers = Workers(run.path, run.log_directory, DISTURBED_FLAGS)
    run.logs += [process.log for process in workers.processes]
    try:
        while True:
            moment = run.rng.uniform(0, run.reference.seconds[True])
            if workers.wait(moment if kinds else PATIENCE):
                return
            if not kinds:
                raise Failure(f"the workers hang: {workers.statuses()}")
            running = [n for n, s in enumerate(workers.statuses()) if s is None]
            index = run.rng.choice(running)
            output = workers.processes[0].output
            workers.processes[index].end()
            moment = run.find_moment(output.rpartition("waiting for all")[2])
            tally.add(kinds.pop(), moment, f"worker {index} killed")
            # Before or after the other worker has noticed the loss.
            time.sleep(run.rng.uniform(0, 12))
            workers.restart(index)
    finally:
        workers.end()
        tally.add_restarts(run.logs)
        run.check_checkpoints()
