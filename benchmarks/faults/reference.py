"""Undisturbed runs, which disturbed runs must equal."""

import dataclasses
import time

from benchmarks.faults.run import (
    DISTURBED_FLAGS,
    FLAGS,
    KEEP_ALL,
    Run,
    override,
)
from benchmarks.faults.run_files import (
    find_checkpoints,
    read_outcome,
    read_state,
)
from benchmarks.faults.training_process import PATIENCE, TrainingProcess
from benchmarks.faults.workers import Workers

FOREIGN_FLAGS = {"seed": "--seed=1", "task": "--task=odds_first"}
"""`{name: flag}` of runs that differ from the toy run in one flag."""


@dataclasses.dataclass(frozen=True)
class Reference:
    """What an undisturbed run leaves.

    Attributes:
        outcome: The result of `read_outcome`.
        states: `{step: result of read_state}`.
        seconds: `{whether the process is fresh: seconds of a run}`.
        foreign: `{name in FOREIGN_FLAGS: directory of that run}`.
    """

    outcome: dict
    states: dict
    seconds: dict
    foreign: dict = dataclasses.field(default_factory=dict)


def make_reference(root):
    """Runs the toy run undisturbed, and other runs; returns the `Reference`.

    Args:
        root: Directory for everything.
    """
    path = root / "undisturbed"
    root.mkdir(parents=True)
    seconds = {True: _run([*FLAGS, *KEEP_ALL], path, fresh=True)}
    reference = read_reference(path, seconds)
    # Most starts are forks, which must behave as fresh processes do.
    forked = Run(root / "forked", root / "forked-logs", reference, None)
    seconds[False] = _run(DISTURBED_FLAGS, forked.path)
    forked.check_end()
    print(
        f"undisturbed: {seconds[True]:.1f} s, forked {seconds[False]:.1f} s",
        flush=True,
    )
    for name, flag in FOREIGN_FLAGS.items():
        reference.foreign[name] = root / name
        flags = override(DISTURBED_FLAGS, flag, "--steps=40")
        _run(flags, root / name)
    return reference


def make_workers_reference(root):
    """Runs the toy run with two workers; returns the `Reference`.

    Args:
        root: Directory for everything.
    """
    path, logs = root / "undisturbed", root / "undisturbed-logs"
    logs.mkdir(parents=True)
    start = time.monotonic()
    both = Workers(path, logs, [*FLAGS, *KEEP_ALL])
    try:
        if not both.wait(PATIENCE):
            raise SystemExit(f"the undisturbed run hangs, see {logs}")
    finally:
        both.end()
    seconds = {True: time.monotonic() - start}
    print(f"undisturbed, two workers: {seconds[True]:.1f} s", flush=True)
    return read_reference(path, seconds)


def read_reference(path, seconds):
    """Reads the `Reference` from the directory of an undisturbed run."""
    states = {
        step: read_state(file) for step, file in find_checkpoints(path).items()
    }
    return Reference(read_outcome(path), states, seconds)


def _run(flags, path, *, fresh=False):
    """Runs a command to its end; returns the seconds that it took."""
    start = time.monotonic()
    log = path.with_name(f"{path.name}.log")
    process = TrainingProcess([*flags, f"--workdir={path}"], log, fresh=fresh)
    if process.wait() != 0:
        raise SystemExit(process.output)
    return time.monotonic() - start
