"""A sweep of commands of `fake_trainer`, as a process of its own.

It is forked from a process that has imported the trainers: to import them takes
longer than any of these sweeps.
"""

import dataclasses
import itertools
import multiprocessing
import os
import pathlib
import signal
import sys
import time

from tests.checkout import ROOT
from trainers import sweep
from trainers.options.command import run
from trainers.sweeps import coordinator, execution, ray_pool
from trainers.sweeps.grids import GRIDS
from trainers.sweeps.grids.grid import Grid, Run
from trainers.sweeps.options import SweepConfig
from trainers.sweeps.root import SweepRoot

TRAINER = "tests.trainers.sweeps.fake_trainer"
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__])
NUMBERS = itertools.count()


class FakeRoot(SweepRoot):
    """Runs the fake trainer, whose flags `fake` has."""

    fake = ""

    def make_job(self, run):
        job = super().make_job(run)
        arguments = (TRAINER, *job.arguments[1:], *self.fake.split())
        return dataclasses.replace(
            job, arguments=arguments, directory=str(ROOT)
        )

    def is_finished(self, run):
        return (self.find_workdir(run) / "results.json").exists()


class FakeRayPool(ray_pool.RayPool):
    """Prints the node that it is connected to."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        node = self._ray.get_runtime_context().get_node_id()
        print(f"connected to {node}.", flush=True)


def make_fake(count, size):
    """Makes a grid, the second run of which continues the first."""
    runs = [
        Run(
            trainer="algorithmic",
            flags={"seed": number, "encoding": "RoPE"},
            row="row",
            column="column",
        )
        for number in range(count)
    ]
    runs[1:2] = [dataclasses.replace(run, after=runs[0]) for run in runs[1:2]]
    return Grid(
        name="fake", title="Fake", size=size, runs=tuple(runs), score="score"
    )


def main(log, count, fake, flags):
    """Runs the program of the sweep in this process."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT, 0o644)
    os.dup2(file, 1)
    os.dup2(file, 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    GRIDS["fake"] = lambda size: make_fake(count, size)
    FakeRoot.fake = fake
    execution.SweepRoot = FakeRoot
    execution.RayPool = FakeRayPool
    coordinator.LOOK_AGAIN = 1
    sys.argv = ["sweep", "--grid=fake", *flags]
    run(SweepConfig, {}, sweep.main)


class Sweep:
    """A sweep that has been started.

    Args:
        root: `pathlib.Path` of its root directory.
        *flags: Further flags.
        runs: int. Number of runs of its grid.
        fake: str. Flags of the fake trainer, with blanks between.

    Attributes:
        process: Its `multiprocessing.Process`.
    """

    def __init__(self, root, *flags, runs=6, fake=""):
        root.mkdir(parents=True, exist_ok=True)
        self._log = root.parent / f"{root.name}-{next(NUMBERS)}.log"
        self.process = FORKS.Process(
            target=main,
            args=(str(self._log), runs, fake, [f"--root={root}", *flags]),
        )
        self.process.start()

    def send(self, number):
        """Sends a signal."""
        os.kill(self.process.pid, number)

    def read(self):
        """Returns what it has printed so far."""
        return self._log.read_text() if self._log.exists() else ""

    def wait_for(self, text):
        """Waits until it has printed a text."""
        wait_for(lambda: text in self.read() or not self.process.is_alive())
        assert text in self.read()

    def end(self, status=0):
        """Waits for its end and returns what it printed."""
        self.process.join(120)
        assert self.process.exitcode == status, self.read()
        return self.read()


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def find_runs(root, name):
    """Returns the files of this name of all runs."""
    return sorted(pathlib.Path(root).glob(f"runs/*/{name}"))
