"""Kills runs at operations on their files, and resumes them.

A kill is simulated, so that all starts of a process share their compiled
programs: from the fatal operation on, no operation of the run has any effect.
A write that is fatal writes half of its bytes. A loss of power also takes from
every file what was not yet on disk.

All that a run resumes from passes `trainers.records.files`.

    python -m benchmarks.faults.file_operations --runs=20 --path=DIRECTORY
"""

import argparse
import contextlib
import functools
import io
import os
import pathlib
import random
import re
import shutil
import threading
from unittest import mock

import keras

from benchmarks.faults.run import Command, Failure
from benchmarks.faults.run_files import read_outcome, read_state
from benchmarks.faults.training_process import TrainingProcess
from trainers import experiment
from trainers.algorithmic import EXPERIMENT
from trainers.options.fields import resolve
from trainers.records import files

TOY = {
    "task": "reverse_string",
    "encoding": "RandomizedRelativeEncoding",
    "num_layers": 1,
    "num_heads": 2,
    "model_dim": 8,
    "dropout": 0.1,
    "batch_size": 8,
    "train_length": "2,3",
    "test_lengths": "5",
    "evaluation_examples": 10,
    "max_position": 32,
    "buckets": 1,
    "steps": 4,
    "evaluate_every": 2,
    "steps_per_loop": 1,
    "checkpoint_every": 1,
    "keep_checkpoints": 2,
    "strategy": "one_device",
}

KEPT = ("make_strategy", "make_training_step", "make_evaluation")
"""Functions whose results all starts share."""

MOST_KILLS = 3
"""Maximum number of kills of a run."""


class Killed(BaseException):
    """A run was killed."""


class FileOperations(contextlib.ExitStack):
    """Context that notes the operations on files, and kills at one of them.

    Args:
        fatal: int. Index of the fatal operation; `None`: there is none.
        loses_power: bool. Whether content that is not on disk is lost.

    Attributes:
        names: List of str, the operations so far; the last one may be fatal.
    """

    def __init__(self, fatal=None, loses_power=False):
        super().__init__()
        self.names = []
        self._fatal = fatal
        self._loses_power = loses_power
        self._killed = False
        self._lock = threading.Lock()
        self._descriptors = {}
        self._sizes = {}

    def __enter__(self):
        super().__enter__()
        self.callback(self._close)
        for owner, name, describe in (
            (os, "replace", lambda source, target: _get_name(target)),
            (os, "fsync", lambda descriptor: ""),
            (pathlib.Path, "unlink", lambda path, **_: path.name),
            (pathlib.Path, "mkdir", lambda path, *_, **__: path.name),
        ):
            act = self._watch(name, describe, getattr(owner, name))
            self.enter_context(mock.patch.object(owner, name, act))
        self.enter_context(
            mock.patch.object(files, "open", self._open, create=True)
        )
        return self

    def meet(self, name, last_act=lambda: None):
        """Notes an operation before it is done.

        Args:
            name: str.
            last_act: Called if the operation is fatal.

        Raises:
            Killed: If the operation is fatal, or another one was.
        """
        with self._lock:
            if self._killed:
                raise Killed
            self.names.append(name)
            if len(self.names) - 1 == self._fatal:
                self._killed = True
                last_act()
                if self._loses_power:
                    self._lose()
                raise Killed

    def _watch(self, name, describe, act):
        def watched(*arguments, **options):
            self.meet(f"{name} {describe(*arguments, **options)}".strip())
            act(*arguments, **options)
            if name == "fsync":
                self._note_size(arguments[0])

        return watched

    def _open(self, path, mode, *, opener, newline=None):
        if "r" in mode:
            return open(path, mode, opener=opener)
        raw = _File(self, path, mode.replace("b", ""), opener)
        found = os.fstat(raw.fileno())
        if found.st_ino not in self._descriptors:
            self._descriptors[found.st_ino] = os.dup(raw.fileno())
            self._sizes[found.st_ino] = found.st_size
        buffered = io.BufferedWriter(raw)
        if "b" in mode:
            return buffered
        return io.TextIOWrapper(buffered, newline=newline)

    def _note_size(self, descriptor):
        found = os.fstat(descriptor)
        self._sizes[found.st_ino] = found.st_size

    def _lose(self):
        for number, descriptor in self._descriptors.items():
            os.ftruncate(descriptor, self._sizes[number])

    def _close(self):
        for descriptor in self._descriptors.values():
            os.close(descriptor)


class _File(io.FileIO):
    """A file whose operations are noted."""

    def __init__(self, operations, path, mode, opener):
        self._name = _get_name(path)
        self._operations = operations
        operations.meet(f"open {self._name}")
        super().__init__(path, mode, opener=opener)

    def write(self, content):
        half = bytes(content[: len(content) // 2])
        write = super().write
        self._operations.meet(f"write {self._name}", lambda: write(half))
        return write(content)


def _get_name(path):
    return pathlib.Path(path).name


class Trainer:
    """Starts a toy run again and again with the same programs.

    Every start begins with the initial weights, as a new process does.

    Args:
        **changes: Flags in place of those of `TOY`.
    """

    def __init__(self, **changes):
        flags = {**TOY, **changes}
        self._config = resolve(EXPERIMENT.config, EXPERIMENT.presets, flags)
        self._kept = {
            name: functools.cache(getattr(experiment, name)) for name in KEPT
        }
        self._parts = None

    def start(self, path):
        """Starts the run in a directory, or resumes it there."""
        with contextlib.ExitStack() as stack:
            for name, make in self._kept.items():
                stack.enter_context(mock.patch.object(experiment, name, make))
            make_parts = mock.patch.object(
                experiment.Experiment, "make_parts", self._make_parts
            )
            stack.enter_context(make_parts)
            EXPERIMENT.train(self._config, path)

    def _make_parts(self, config, strategy):
        if self._parts is None:
            keras.utils.set_random_seed(config.seed)
            model = EXPERIMENT.build_model(config)
            optimizer = experiment.make_optimizer(config, model)
            self._parts = model, optimizer, EXPERIMENT.make_problem(config)
            variables = [*model.weights, *optimizer.variables]
            self._initial = [
                (variable, keras.ops.convert_to_numpy(variable).copy())
                for variable in variables
            ]
        for variable, value in self._initial:
            variable.assign(value)
        return self._parts


def read_end(path):
    """Reads what a finished run leaves, without times."""
    states = {
        file.name: read_state(file)
        for file in (path / "checkpoints").glob("*.npz")
    }
    partial = sorted(file.name for file in path.rglob("*.partial"))
    return {**read_outcome(path), "states": states, "partial": partial}


def _name_kind(operation):
    """Returns the name of an operation without numbers."""
    return re.sub(r"\d+", "N", operation)


class KilledRuns:
    """Runs that are killed at random operations.

    Args:
        path: `pathlib.Path` of a directory for all runs.
    """

    def __init__(self, path):
        self._path = path
        self._trainer = Trainer()
        with FileOperations() as operations:
            self._trainer.start(path / "undisturbed")
        self._kinds = list(map(_name_kind, operations.names))
        self._end = read_end(path / "undisturbed")

    def kill(self, rng):
        """Kills a run one or several times, and resumes it to its end.

        Args:
            rng: `random.Random`.

        Returns:
            List of pairs of str, when and how it was killed.

        Raises:
            Failure: If the run does not end as the undisturbed one.
        """
        path, deaths = self._path / "killed", []
        shutil.rmtree(path, ignore_errors=True)
        for _ in range(rng.randint(1, MOST_KILLS)):
            # Most operations write a checkpoint.
            kind = rng.choice(sorted(set(self._kinds)))
            places = [n for n, k in enumerate(self._kinds) if k == kind]
            loses_power = rng.random() < 0.5
            operations = FileOperations(rng.choice(places), loses_power)
            with contextlib.suppress(Killed), operations:
                self._trainer.start(path)
                break
            how = "lost power" if loses_power else "killed"
            deaths.append((_name_kind(operations.names[-1]), how))
        self._trainer.start(path)
        end = read_end(path)
        # A kill may prevent the removal of older checkpoints.
        states = end["states"]
        end["states"] = {n: states.get(n) for n in self._end["states"]}
        for name, found in end.items():
            if found != self._end[name]:
                raise Failure(f"after {deaths}, other {name}")
        return deaths


class OperationsCommand(Command):
    """The command of this module, as a subject of the drill.

    Args:
        path: Directory of the runs.
        logs: Directory for the output.
        reference: Nothing.
        rng: `random.Random` of this command.
    """

    def __init__(self, path, logs, reference, rng):
        del reference
        super().__init__([], path, logs, rng)
        path.mkdir()

    def check_end(self):
        """Does nothing: the command has compared its runs."""


def disturb_operations(run, kinds, tally):
    """Kills runs at operations on their files, all in one process.

    Args:
        run: The `OperationsCommand`.
        kinds: Kinds of faults, of which the list will have none.
        tally: The `Tally`.
    """
    run.logs.append(run.log_directory / "start.log")
    flags = [
        f"--path={run.path}",
        f"--seed={run.rng.randrange(2**31)}",
        f"--runs={len(kinds)}",
    ]
    module = "benchmarks.faults.file_operations"
    process = TrainingProcess(flags, run.logs[-1], module=module)
    try:
        status = process.wait(60 * len(kinds) + 300)
    finally:
        process.end()
    ends = re.findall(r"^run \d+: (.*): (.*)$", process.output, re.M)
    for (moment, ending), kind in zip(ends, tuple(kinds), strict=False):
        tally.add(kind, moment, ending)
        kinds.pop()
    if status != 0:
        raise Failure(f"exit status {status} of killed runs")


def main():
    """Kills runs, one of each seed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--path", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=20)
    arguments = parser.parse_args()
    arguments.path.mkdir(parents=True, exist_ok=True)
    runs = KilledRuns(arguments.path)
    for number in range(arguments.runs):
        deaths = runs.kill(random.Random(arguments.seed + number))
        print(f"run {number}: {': '.join(deaths[0])}", flush=True)


if __name__ == "__main__":
    main()
