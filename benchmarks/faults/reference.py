"""Undisturbed runs, which disturbed runs must equal."""

import dataclasses
import time

from benchmarks.faults.run import FLAGS, Run
from benchmarks.faults.run_files import (
    find_checkpoints,
    read_outcome,
    read_state,
)
from benchmarks.faults.training_process import PATIENCE, TrainingProcess
from benchmarks.faults.workers import Workers

KEEP_ALL = [*FLAGS, "--checkpoint_every=2", "--keep_checkpoints=100000"]


@dataclasses.dataclass(frozen=True)
class Reference:
    """What an undisturbed run leaves.

    Attributes:
        outcome: The result of `read_outcome`.
        states: `{step: result of read_state}`.
        seconds: `{whether the process is fresh: seconds of a run}`.
    """

    outcome: dict
    states: dict
    seconds: dict


def make_reference(root, workers):
    """Runs the toy run undisturbed.

    Args:
        root: Directory for everything.
        workers: Whether two workers run it, instead of one process.

    Returns:
        The `Reference`.
    """
    path, logs = root / "undisturbed", root / "undisturbed-logs"
    logs.mkdir(parents=True)
    start = time.monotonic()
    if workers:
        both = Workers(path, logs, KEEP_ALL)
        try:
            if not both.wait(PATIENCE):
                raise SystemExit(f"the undisturbed run hangs, see {logs}")
        finally:
            both.end()
    else:
        arguments = [*KEEP_ALL, f"--workdir={path}"]
        _finish(TrainingProcess(arguments, logs / "start.log", fresh=True))
    seconds = {True: time.monotonic() - start}
    print(f"undisturbed: {seconds[True]:.1f} s", flush=True)
    states = {
        step: read_state(file) for step, file in find_checkpoints(path).items()
    }
    reference = Reference(read_outcome(path), states, seconds)
    if not workers:
        # Most starts are forks, which must behave as fresh processes do.
        forked = Run(root / "forked", root / "forked-logs", reference, None)
        start = time.monotonic()
        _finish(forked.start(fresh=False))
        seconds[False] = time.monotonic() - start
        print(f"undisturbed, forked: {seconds[False]:.1f} s", flush=True)
        forked.check_end()
    return reference


def _finish(process):
    if process.wait() != 0:
        raise SystemExit(process.output)
