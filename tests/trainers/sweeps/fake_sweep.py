"""A sweep of commands of `fake_trainer`, run as a module.

The grid `fake` has `FAKE_RUNS` runs, 6 by default.
"""

import dataclasses
import os
import pathlib

from tests.checkout import ROOT
from trainers.sweeps import execution, ray_pool
from trainers.sweeps.grids import GRIDS
from trainers.sweeps.grids.grid import Grid, Run
from trainers.sweeps.options import SweepConfig
from trainers.sweeps.root import SweepRoot

TRAINER = "tests.trainers.sweeps.fake_trainer"


def make_fake(size):
    count = int(os.environ.get("FAKE_RUNS", 6))
    runs = tuple(
        Run(
            trainer="algorithmic",
            flags={"seed": number, "encoding": "RoPE"},
            row="row",
            column="column",
        )
        for number in range(count)
    )
    return Grid(name="fake", title="Fake", size=size, runs=runs, score="score")


class FakeRoot(SweepRoot):
    """Runs the fake trainer, whose flags FAKE_FLAGS has."""

    def make_job(self, run):
        job = super().make_job(run)
        more = os.environ.get("FAKE_FLAGS", "").split()
        arguments = (TRAINER, *job.arguments[1:], *more)
        return dataclasses.replace(
            job, arguments=arguments, directory=str(ROOT)
        )

    def is_finished(self, run):
        return (self.find_workdir(run) / "results.json").exists()


class FakeRayPool(ray_pool.RayPool):
    """Writes down the node that it is connected to."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        node = self._ray.get_runtime_context().get_node_id()
        pathlib.Path(os.environ["FAKE_NODE"]).write_text(node)


if __name__ == "__main__":
    from trainers import sweep
    from trainers.options.command import run

    GRIDS["fake"] = make_fake
    execution.SweepRoot = FakeRoot
    execution.RayPool = FakeRayPool
    run(SweepConfig, {}, sweep.main)
