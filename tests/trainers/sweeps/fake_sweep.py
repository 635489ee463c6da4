"""A sweep of `fake_trainer`, forked from a process that has imported Keras."""

import dataclasses
import itertools
import os
import pathlib
import sys

from tests.checkout import ROOT
from tests.loading import FORKS
from tests.shell import wait_for
from tests.trainers.sweeps.files import make_run
from trainers import sweep
from trainers.options.command import run
from trainers.sweeps import coordinator, execution
from trainers.sweeps.grids import GRIDS
from trainers.sweeps.grids.grid import Grid
from trainers.sweeps.options import SweepConfig
from trainers.sweeps.root import SweepRoot

TRAINER = "tests.trainers.sweeps.fake_trainer"
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


def make_fake(size):
    """Makes a grid, the second run of which continues the first."""
    runs = [make_run(number) for number in range(6)]
    runs[1] = make_run(1, after=runs[0])
    return Grid(
        name="fake", title="Fake", size=size, runs=tuple(runs), score="score"
    )


def main(log, fake, flags):
    """Runs the program of the sweep in this process."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT, 0o644)
    os.dup2(file, 1)
    os.dup2(file, 2)
    GRIDS["fake"] = make_fake
    FakeRoot.fake = fake
    execution.SweepRoot = FakeRoot
    coordinator.LOOK_AGAIN = 1
    sys.argv = ["sweep", "--grid=fake", *flags]
    run(SweepConfig, {}, sweep.main)


class Sweep:
    """A sweep that has been started; `fake` are flags of the fake trainer."""

    def __init__(self, root, *flags, fake=""):
        root.mkdir(parents=True, exist_ok=True)
        self._log = root.parent / f"{root.name}-{next(NUMBERS)}.log"
        flags = [f"--root={root}", *flags]
        self._process = FORKS.Process(
            target=main, args=(str(self._log), fake, flags)
        )
        self._process.start()

    def send(self, number):
        os.kill(self._process.pid, number)

    def wait_for(self, text):
        """Waits until it has printed a text."""
        wait_for(lambda: self._log.exists() and text in self._log.read_text())

    def end(self, status=0):
        """Waits for its end and returns what it printed."""
        self._process.join(120)
        output = self._log.read_text()
        assert self._process.exitcode == status, output
        return output


def find_runs(root, name):
    """Returns the files of this name of all runs."""
    return sorted(pathlib.Path(root).glob(f"runs/*/{name}"))
