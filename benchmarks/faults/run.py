"""A toy run that the drill disturbs, and the checks of what it has saved."""

import contextlib
import time

from benchmarks.faults.run_files import (
    find_checkpoints,
    read_metrics,
    read_outcome,
    read_state,
)
from benchmarks.faults.training_process import PATIENCE, TrainingProcess

STEPS = 200
EVALUATE_EVERY = 40
FLAGS = [
    "--task=reverse_string",
    "--encoding=RandomizedRelativeEncoding",
    "--num_layers=1",
    "--num_heads=2",
    "--model_dim=8",
    "--dropout=0.1",
    "--batch_size=8",
    "--train_length=2,3",
    "--test_lengths=5,6",
    "--evaluation_examples=10",
    "--max_position=32",
    "--buckets=2",
    f"--steps={STEPS}",
    f"--evaluate_every={EVALUATE_EVERY}",
    "--steps_per_loop=2",
]
# Often, so that many faults hit a checkpoint while it is written.
DISTURBED_FLAGS = [*FLAGS, "--checkpoint_every=4"]
# Flags of undisturbed runs. Neither flag changes the outcome.
KEEP_ALL = ["--checkpoint_every=2", "--keep_checkpoints=100000"]


def override(flags, *changes):
    """Returns flags with others in place of those of the same names."""
    names = {change.partition("=")[0] for change in changes}
    kept = [flag for flag in flags if flag.partition("=")[0] not in names]
    return [*kept, *changes]


FRESH = 1 / 6
"""Fraction of starts that import TensorFlow again, and may be hit there."""


class Failure(Exception):
    """A run lost something, or did not say clearly what happened."""


class Command:
    """A command that is started until it has done its work.

    Args:
        flags: Flags of the trainer.
        path: Working directory.
        logs: Directory for the output of every start.
        rng: `random.Random` of this command.
    """

    def __init__(self, flags, path, logs, rng):
        self._flags = [*flags, f"--workdir={path}"]
        self.path = path
        self.rng = rng
        self.logs = []
        self.log_directory = logs
        logs.mkdir(parents=True)

    def start(self, fresh=None):
        """Starts the command once more."""
        if fresh is None:
            fresh = self.rng.random() < FRESH
        log = self.log_directory / f"start-{len(self.logs)}.log"
        self.logs.append(log)
        return TrainingProcess(self._flags, log, fresh=fresh)


class Run(Command):
    """A run that is disturbed, and what the drill knows about it.

    Args:
        path: Working directory.
        logs: Directory for the output of every start.
        reference: The `Reference` that the run must equal.
        rng: `random.Random` of this run.
    """

    def __init__(self, path, logs, reference, rng):
        super().__init__(DISTURBED_FLAGS, path, logs, rng)
        self.reference = reference
        self.damaged = {}
        self.started = 0.0

    def start(self, fresh=None):
        """Starts the command once more, after its last process has ended."""
        self.started = time.time()
        return super().start(fresh)

    def start_second(self):
        """Starts the command while its last process goes on."""
        return super().start()

    def find_moment(self, output):
        """Finds out what the run was doing at the end of its output."""
        if "replica(s), here" not in output:
            return "starting"
        if self.is_saving():
            return "saving"
        if (self.path / "results.json").exists():
            return "finishing"
        steps = self.read_steps()
        if steps and steps[-1] % EVALUATE_EVERY == 0:
            return "evaluating"
        return "training"

    def is_saving(self):
        """Whether the run writes a checkpoint, or did so when it ended."""
        for file in self.path.glob("checkpoints/*.partial"):
            # The run renames the file once the checkpoint is complete.
            with contextlib.suppress(FileNotFoundError):
                # An older file was left by an earlier start.
                if file.stat().st_mtime > self.started:
                    return True
        return False

    def wait_for_saving(self, process):
        """Waits up to two seconds for a checkpoint to be written.

        Returns:
            The exit status of the process, `None` if it still runs.
        """
        until = time.monotonic() + 2
        while (status := process.wait(0)) is None:
            if self.is_saving() or time.monotonic() >= until:
                break
            time.sleep(0.0001)
        return status

    def wait_for_step(self, process, step):
        """Waits until a step is in `metrics.csv`.

        Returns:
            The exit status of the process, `None` if it still runs.
        """
        until = time.monotonic() + PATIENCE
        while (status := process.wait(0.005)) is None:
            done = max(self.read_steps(), default=0)
            if done >= step or time.monotonic() >= until:
                break
        return status

    def read_steps(self):
        """Reads the steps in `metrics.csv`."""
        return [int(row[0]) for row in read_metrics(self.path)]

    def is_damaged(self, file):
        """Whether the drill has damaged this checkpoint."""
        return self.damaged.get(file) == file.read_bytes()

    def check_checkpoints(self):
        """Raises `Failure` unless every checkpoint equals the reference."""
        for step, file in find_checkpoints(self.path).items():
            if self.is_damaged(file):
                continue
            if read_state(file) != self.reference.states[step]:
                raise Failure(f"{file} differs from the undisturbed run's")

    def check_end(self):
        """Raises `Failure` unless the run ended as the undisturbed one."""
        self.check_checkpoints()
        if max(self.reference.states) not in find_checkpoints(self.path):
            raise Failure("the last checkpoint is missing")
        for name, found in read_outcome(self.path).items():
            if found != self.reference.outcome[name]:
                raise Failure(f"{name} differ from the undisturbed run's")
