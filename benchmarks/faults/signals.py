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
        process.send(number)
        late = STEPS in run.read_steps()
        status = process.wait()
        output = process.output
        said_so = f"stopped by {name}:" in output
        if status == 128 + number and said_so and "Traceback" not in output:
            if run.read_steps()[-1] not in find_checkpoints(run.path):
                raise Failure(f"the steps before {name} were not saved")
            return "saved and stopped"
        # The trainer handles signals neither while Python imports, nor after
        # it has written everything.
        unguarded = run.find_moment(output) in ("starting", "finishing")
        if unguarded and (status == -number or "KeyboardInterrupt" in output):
            return "ended by the signal"
        # Some imports catch KeyboardInterrupt and go on.
        swallowed = number == signal.SIGINT and early
        if status == 0 and (late or swallowed):
            return "ran to its end"
        raise Failure(f"exit status {status} after {name}")

    return stop
