"""Faults that are signals: SIGKILL, SIGTERM and SIGINT."""

import signal

from benchmarks.faults.run import STEPS, Failure
from benchmarks.faults.run_files import find_checkpoints


def kill(run, process):
    """Kills a run; returns how it ended."""
    process.end()
    return "killed"


def stop_by(number):
    """Makes a fault that asks a run to stop by a signal."""
    name = signal.Signals(number).name

    def stop(run, process):
        early = run.find_moment(process.output) == "starting"
        finished = (run.path / "results.json").exists()
        process.send(number)
        late = STEPS in run.read_steps()
        status = process.wait()
        output = process.output
        said_so = f"error: stopped by {name}" in output
        if status == 128 + number and said_so and "Traceback" not in output:
            done = run.read_steps()
            if (
                done
                and not early
                and done[-1] not in find_checkpoints(run.path)
            ):
                raise Failure(f"the steps before {name} were not saved")
            return "saved and stopped"
        # A trainer handles SIGTERM once its imports are done, and SIGINT once
        # Python itself has started. While Python ends, it handles neither.
        unguarded = (early and "trainers" not in output) or (
            finished and process.fresh
        )
        if unguarded and (status == -number or "KeyboardInterrupt" in output):
            return "ended by the signal"
        if status == 0 and late:
            return "ran to its end"
        raise Failure(f"exit status {status} after {name}")

    return stop
