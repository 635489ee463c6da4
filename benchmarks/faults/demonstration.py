"""Signals while a command changes from one model to the next.

Without `--encoding` a command trains two models, each in a directory of its
own below `--workdir`.
"""

import dataclasses
import re
import signal
import time

from benchmarks.faults.reference import Reference, read_reference
from benchmarks.faults.run import (
    DISTURBED_FLAGS,
    KEEP_ALL,
    Command,
    Failure,
    Run,
    override,
)
from benchmarks.faults.run_files import find_checkpoints
from benchmarks.faults.training_process import (
    PATIENCE,
    TrainingProcess,
    find_errors,
)

MODELS = ("RoPE", "RandomizedRoPE")
"""Directories of the models, in the order of their training."""

STEPS = 40

FLAGS = [
    flag
    for flag in override(DISTURBED_FLAGS, f"--steps={STEPS}")
    if not flag.startswith("--encoding=")
]


@dataclasses.dataclass(frozen=True)
class DemonstrationReference:
    """What an undisturbed demonstration leaves.

    Attributes:
        models: `{name: Reference of its run}`.
        plot: Whether there is a plot of both models.
        change: Seconds between the last checkpoint of the first model and the
            first loss of the second one.
    """

    models: dict[str, Reference]
    plot: bool
    change: float


class Demonstration(Command):
    """A command that trains two models, and what the drill knows about it.

    Args:
        path: Working directory.
        logs: Directory for the output of every start.
        reference: The `DemonstrationReference` that it must equal.
        rng: `random.Random` of this command.
    """

    def __init__(self, path, logs, reference, rng):
        super().__init__(FLAGS, path, logs, rng)
        self.reference = reference
        self.models = [
            Run(path / name, logs / name, reference.models[name], rng)
            for name in MODELS
        ]

    def find_moment(self):
        """Finds out where the command is between its two models."""
        first, second = (model.path for model in self.models)
        if STEPS not in find_checkpoints(first):
            return "training the first model"
        if not (first / "results.json").exists():
            return "evaluating the first model"
        if not (second / "config.json").exists():
            return "between the models"
        if not self.models[1].read_steps():
            return "starting the second model"
        return "training the second model"

    def wait_for_change(self, process):
        """Waits for a random moment around the change of the models.

        Returns:
            Whether the process has come there, and the second model has not
            finished yet.
        """
        until = time.monotonic() + PATIENCE
        first, second = self.models
        while process.wait(0.005) is None and time.monotonic() < until:
            if second.read_steps():
                return False
            if STEPS in find_checkpoints(first.path) and re.search(
                r"replica\(s\), here|already finished", process.output
            ):
                seconds = self.rng.uniform(0, 1.3 * self.reference.change)
                # A process that only frees its memory any more ignores
                # signals, and its status is 0.
                ended = process.wait(seconds) is not None
                return not (ended or (second.path / "results.json").exists())
        return False

    def check_checkpoints(self):
        """Raises `Failure` unless every checkpoint equals the reference."""
        for model in self.models:
            model.check_checkpoints()

    def check_end(self):
        """Raises `Failure` unless both models equal the undisturbed ones."""
        for model in self.models:
            model.check_end()
        if _has_plot(self.path) != self.reference.plot:
            raise Failure("the plot differs from the undisturbed run's")


def disturb_demonstration(run, kinds, tally):
    """Disturbs a demonstration until it ends.

    Args:
        run: The `Demonstration`.
        kinds: Kinds of faults, taken from the end of the list; those that it
            escapes stay in the list.
        tally: The `Tally`.
    """
    while True:
        process = run.start()
        try:
            if kinds and run.wait_for_change(process):
                _stop(run, process, kinds.pop(), tally)
                continue
            status = process.wait()
        finally:
            process.end()
        if status != 0:
            raise Failure(f"exit status {status} without a fault")
        return


def _stop(run, process, kind, tally):
    """Stops a demonstration by a signal."""
    number = run.rng.choice([signal.SIGTERM, signal.SIGINT])
    moment, how = run.find_moment(), "failed"
    process.send(number)
    try:
        status = process.wait()
        errors = find_errors(process.output)
        said_so = f"error: stopped by {number.name}"
        if (
            status != 128 + number
            or len(errors) != 1
            or not errors[0].startswith(said_so)
        ):
            raise Failure(f"exit status {status} after {number.name}: {errors}")
        for model in run.models:
            steps = model.read_steps()
            if steps and steps[-1] not in find_checkpoints(model.path):
                raise Failure(f"the steps before {number.name} were not saved")
        run.check_checkpoints()
        how = f"stopped by {number.name}"
    finally:
        tally.add(kind, moment, how)


def make_demonstration_reference(root):
    """Runs the demonstration undisturbed; returns its reference.

    Args:
        root: Directory for everything.
    """
    path = root / "undisturbed"
    root.mkdir(parents=True)
    flags = [*override(FLAGS, *KEEP_ALL), f"--workdir={path}"]
    process = TrainingProcess(flags, root / "start.log")
    first, second = (path / name for name in MODELS)
    saved = first / "checkpoints" / f"checkpoint-{STEPS}.npz"
    start, change = None, None
    while process.wait(0.01) is None:
        if start is None and saved.exists():
            start = time.monotonic()
        if change is None and _has_losses(second):
            change = time.monotonic() - start
    if process.wait() != 0:
        raise SystemExit(process.output)
    print(f"change of models, undisturbed: {change:.1f} s", flush=True)
    models = {name: read_reference(path / name, {}) for name in MODELS}
    return DemonstrationReference(models, _has_plot(path), change)


def _has_losses(path):
    return (path / "metrics.csv").exists() and (
        "train_loss" in (path / "metrics.csv").read_text()
    )


def _has_plot(path):
    return (path / "length_generalization.png").exists()
