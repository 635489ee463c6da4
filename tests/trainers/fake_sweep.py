"""A sweep of commands of `fake_trainer`: python -m tests.trainers.fake_sweep.

The grid `fake` has `FAKE_CELLS` cells, 6 by default.
"""

import dataclasses
import os
import pathlib

from trainers import grids
from trainers.cluster import ray_pool
from trainers.grids.grid import Cell, Grid
from trainers.options import sweep as options
from trainers.records import sweep_root

ROOT = pathlib.Path(__file__).parents[2]


def make_fake(size):
    count = int(os.environ.get("FAKE_CELLS", 6))
    cells = tuple(
        Cell(
            trainer="algorithmic",
            flags={"seed": number, "encoding": "RoPE"},
            row="row",
            column="column",
        )
        for number in range(count)
    )
    return Grid(
        name="fake", title="Fake", size=size, cells=cells, score="score"
    )


class FakeRoot(sweep_root.SweepRoot):
    """Runs the fake trainer, whose flags FAKE_FLAGS has."""

    def make_job(self, cell):
        job = super().make_job(cell)
        more = os.environ.get("FAKE_FLAGS", "").split()
        arguments = ("tests.trainers.fake_trainer", *job.arguments[1:], *more)
        return dataclasses.replace(
            job, arguments=arguments, directory=str(ROOT)
        )

    def is_finished(self, cell):
        return (self.find_workdir(cell) / "results.json").exists()


class FakeRayPool(ray_pool.RayPool):
    """Writes down the node that it is connected to."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        node = self._ray.get_runtime_context().get_node_id()
        pathlib.Path(os.environ["FAKE_NODE"]).write_text(node)


if __name__ == "__main__":
    from trainers import sweep
    from trainers.options.command import run

    grids.GRIDS["fake"] = make_fake
    sweep.SweepRoot = FakeRoot
    sweep.RayPool = FakeRayPool
    run(options.SweepConfig, {}, sweep.main)
