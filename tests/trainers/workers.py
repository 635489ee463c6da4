"""Processes of programs, started and signalled by tests."""

import functools
import json
import os
import pathlib
import signal
import sys
import time

import numpy as np
import tensorflow as tf

from benchmarks.faults import training_process
from benchmarks.faults.workers import make_environments
from tests.loading import FORKS
from tests.trainers.toy import run_toy
from trainers import experiment
from trainers.records.checkpoints import Checkpoints

PATIENCE = 600
"""Seconds after which a process is said to hang."""


class Started:
    """A program that has been started, in a fork that ends with the tests.

    Its arguments are those of `run_program`.
    """

    def __init__(self, arguments, log, **options):
        self.log = log
        log.touch()
        self.again = functools.partial(Started, arguments, log, **options)
        self._process = FORKS.Process(
            target=run_program,
            args=([*map(str, arguments)], str(log)),
            kwargs=options,
            daemon=True,
        )
        self._process.start()

    @property
    def output(self):
        """What the process has written."""
        return self.log.read_text()

    def wait(self):
        """The exit status, negative for a signal."""
        self._process.join(PATIENCE)
        assert not self._process.is_alive(), f"hangs: {self.output}"
        return self._process.exitcode

    def wait_for(self, condition):
        """Waits until a condition holds while the process runs."""
        until = time.monotonic() + PATIENCE
        while not condition():
            assert self._process.is_alive(), self.output
            assert time.monotonic() < until, f"hangs: {self.output}"
            time.sleep(0.01)

    def send(self, number):
        """Sends a signal."""
        os.kill(self._process.pid, number)

    def kill(self):
        """Kills the process and waits for its end."""
        self.send(signal.SIGKILL)
        assert self.wait() == -signal.SIGKILL


def run_program(
    arguments,
    log,
    module="trainers.algorithmic",
    environment=None,
    directory=".",
):
    """Runs a module in this process, as `TrainingProcess` does in a fork."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.environ.update(environment or {})
    os.chdir(directory)
    os._exit(training_process._run_module(module, arguments, fresh=False))


def start_workers(arguments, logs, **options):
    """Starts two workers of one run on this machine."""
    return [
        Started(
            arguments,
            logs / f"worker-{index}.log",
            environment=environment,
            **options,
        )
        for index, environment in enumerate(make_environments(2))
    ]


class Kept(Checkpoints):
    """Checkpoints whose state can be had in workers that write none."""

    last = None

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        Kept.last = self


def main(path, flags):
    """Runs a toy run; each worker saves its final weights beside it."""
    experiment.Checkpoints = Kept
    path = pathlib.Path(path)
    run_toy(path, **json.loads(flags))
    index = tf.distribute.cluster_resolver.TFConfigClusterResolver().task_id
    np.savez(path.with_name(f"{path.name}-{index}.npz"), **Kept.last.copy())


if __name__ == "__main__":
    main(*sys.argv[1:])
