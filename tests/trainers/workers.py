"""Processes of trainers, started and signalled by tests.

They are forks of a process that has imported TensorFlow and computed nothing,
which a process of pytest cannot be.
"""

import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import tensorflow as tf

from benchmarks.faults.training_process import TrainingProcess
from benchmarks.faults.workers import make_environments
from tests.trainers.toy import run_toy
from trainers import experiment
from trainers.records.checkpoints import Checkpoints

PATIENCE = 600
"""Seconds after which a process is said to hang."""


class Nursery:
    """Starts trainers; a context manager, which kills them in the end."""

    def __enter__(self):
        # Its forks say no more than a trainer, which starts by setting this.
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.trainers.workers", "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        return self

    def __exit__(self, *_):
        self._process.communicate()

    def ask(self, **request):
        """The answer of the process to a request."""
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, arguments, log, **options):
        """Starts a process as `TrainingProcess` does."""
        pid = self.ask(start=[list(map(str, arguments)), str(log)], **options)
        again = functools.partial(self.start, arguments, log, **options)
        return Started(self, pid, log, again)

    def start_workers(self, commands, logs, **options):
        """Starts workers of one run on this machine, each by its arguments."""
        return [
            self.start(
                arguments,
                logs / f"worker-{index}.log",
                environment=environment,
                **options,
            )
            for index, (arguments, environment) in enumerate(
                zip(commands, make_environments(len(commands)), strict=True)
            )
        ]

    def start_runs(self, path, changes, *, devices=1, workers=0):
        """Starts toy runs after each other in one process, or in each worker.

        Args:
            path: Directory for the directories of the runs.
            changes: `{name: arguments of run_toy}`.
            devices: Logical CPU devices of the process.
            workers: Number of workers, or 0 for a process alone.
        """
        path.mkdir()
        arguments = ["runs", path, devices, json.dumps(changes)]
        module = "tests.trainers.workers"
        if workers:
            return self.start_workers(
                [arguments] * workers, path, module=module
            )
        return [self.start(arguments, path / "log", module=module)]


class Started:
    """A process that a `Nursery` has started."""

    def __init__(self, nursery, pid, log, again):
        self._nursery = nursery
        self._pid = pid
        self.log = log
        self.again = again

    @property
    def output(self):
        """What the process has written."""
        return self.log.read_text()

    def wait(self):
        """The exit status, negative for a signal."""
        status = self._nursery.ask(wait=self._pid)
        assert status is not None, f"hangs: {self.output}"
        return status

    def wait_for(self, condition):
        """Waits until a condition holds while the process runs."""
        until = time.monotonic() + PATIENCE
        while not condition():
            assert self._nursery.ask(poll=self._pid) is None, self.output
            assert time.monotonic() < until, f"hangs: {self.output}"
            time.sleep(0.01)

    def send(self, number):
        """Sends a signal."""
        self._nursery.ask(send=self._pid, number=number)

    def kill(self):
        """Kills the process and waits for its end."""
        self.send(signal.SIGKILL)
        assert self.wait() == -signal.SIGKILL


def serve():
    """Does what a `Nursery` asks, line by line."""
    trainers = {}
    for line in sys.stdin:
        request = json.loads(line)
        answer = None
        if "start" in request:
            trainer = TrainingProcess(*request.pop("start"), **request)
            answer = trainer.pid
            trainers[answer] = trainer
        elif "wait" in request:
            answer = trainers[request["wait"]].wait(PATIENCE)
        elif "poll" in request:
            answer = trainers[request["poll"]].wait(0)
        else:
            trainers[request["send"]].send(request["number"])
        print(json.dumps(answer), flush=True)
    for trainer in trainers.values():
        trainer.end()


class Kept(Checkpoints):
    """Checkpoints whose state can be had in workers that write none."""

    last = None

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        Kept.last = self


def runs(path, devices, changes):
    """Toy runs after each other; each process saves its final weights."""
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * int(devices),
    )
    experiment.Checkpoints = Kept
    for name, arguments in json.loads(changes).items():
        run_toy(pathlib.Path(path) / name, **arguments)
        index = tf.distribute.cluster_resolver.TFConfigClusterResolver().task_id
        where = pathlib.Path(path) / f"{name}-{index or 0}.npz"
        np.savez(where, **Kept.last.copy())


if __name__ == "__main__":
    {"serve": serve, "runs": runs}[sys.argv[1]](*sys.argv[2:])
