"""A sweep of `fake_trainer`, forked from a process that has imported Keras."""

import dataclasses
import itertools
import pathlib
import sys

from tests.checkout import ROOT
from tests.trainers.sweeps.files import make_run
from tests.trainers.workers import Started
from trainers import sweep
from trainers.options.command import run
from trainers.sweeps import training
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


def main(fake, *flags):
    """Runs the program of the sweep in this process."""
    GRIDS["fake"] = make_fake
    FakeRoot.fake = fake
    training.SweepRoot = FakeRoot
    sys.argv = ["sweep", "--grid=fake", *flags]
    run(SweepConfig, {}, sweep.main)


class Sweep(Started):
    """A sweep that has been started; `fake` are flags of the fake trainer."""

    def __init__(self, root, *flags, fake=""):
        root.mkdir(parents=True, exist_ok=True)
        log = root.parent / f"{root.name}-{next(NUMBERS)}.log"
        arguments = (fake, f"--root={root}", *flags)
        super().__init__(arguments, log, module=__name__)

    def end(self, status=0):
        """Waits for its end and returns what it printed."""
        assert self.wait() == status, self.output
        return self.output


def find_runs(root, name):
    """Returns the files of this name of all runs."""
    return sorted(pathlib.Path(root).glob(f"runs/*/{name}"))


if __name__ == "__main__":
    main(*sys.argv[1:])
