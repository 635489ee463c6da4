"""Runs all runs of a table or a figure, and resumes them.

    python -m trainers.sweep --grid=ruoss_table_1 --dry_run=true
    python -m trainers.sweep --grid=ruoss_table_1 --jobs=2
    python -m trainers.sweep --grid=ruoss_table_1 --size=paper --shard=3/64
    python -m trainers.sweep --grid=ruoss_table_1 --engine=ray --address=auto

A cell of a grid is one command of a trainer with a working directory of its
own, named after its flags and their digest, below the root directory. Cells
that are finished are skipped, others begin or resume. The same root may be
worked on by several such commands, on several machines and with either engine:
a lock keeps two of them from one cell.
"""

import contextlib
import functools
import os
import pathlib
import shlex

import trainers
from trainers.cluster.coordinator import Coordinator
from trainers.cluster.interruption import (
    end_at_once,
    handle_signals,
    raise_stopped,
)
from trainers.cluster.local_pool import LocalPool, count_cores
from trainers.cluster.measuring import measure
from trainers.cluster.ray_pool import RayPool
from trainers.errors import TrainingError
from trainers.grids import GRIDS
from trainers.grids.grid import list_runs, take_shard
from trainers.grids.overrides import with_overrides
from trainers.options.command import run
from trainers.options.sweep import SweepConfig, parse_shard, split_flags
from trainers.records.progress import Table, format_seconds
from trainers.records.sweep_root import SweepRoot, find_root

SHOWN = 3
"""Number of commands that a dry run lists, unless it lists all."""


def main(config):
    """Runs the cells of a grid that are not finished."""
    grid = GRIDS[config.grid](config.size)
    given = split_flags(config.flags)
    cells, arguments = with_overrides(list_runs(grid.cells), given)
    cells = take_shard(list_runs(cells), *parse_shard(config.shard))
    root = _open_root(config, arguments)
    for cell in cells:
        root.make_config(cell)
    if config.measure == "true":
        measure(root, functools.partial(_open_pool, config, root), cells)
    ends = config.dry_run != "false" or config.measure == "true"
    if config.retry_failed == "true" and not ends:
        for cell in cells:
            if root.find_state(cell) == "failed":
                root.forget_failure(cell)
    _describe(root, grid, cells)
    if config.dry_run != "false":
        _list_commands(root, cells, config.dry_run == "all")
    if not ends:
        run_cells(config, root, cells)


def _open_root(config, arguments):
    checkout = str(pathlib.Path(trainers.__file__).parents[1])
    paths = [checkout, os.environ.get("PYTHONPATH", "")]
    return SweepRoot(
        find_root(config.root, config.grid, config.size),
        arguments=arguments,
        directory=os.getcwd(),
        environment={"PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )


@contextlib.contextmanager
def _open_pool(config, root):
    """Gives a pool, and lets its cells save their states at the end."""
    if config.engine == "local":
        jobs = config.jobs or count_cores()
        pool = LocalPool(jobs, config.gpus, root.list_orphans())
    else:
        pool = RayPool(config.address, config.cpus, config.gpus, config.tpus)
        # Ray has set a handler of its own.
        handle_signals(raise_stopped)
    print(f"{pool.describe}, below {root.path}", flush=True)
    try:
        yield pool
    finally:
        # Cells that were asked to save do so without the sweep, too.
        handle_signals(end_at_once)
        pool.stop()
        handle_signals(raise_stopped)


def run_cells(config, root, cells):
    """Runs cells, and reports those that failed."""
    with _open_pool(config, root) as pool:
        coordinator = Coordinator(
            *(root, pool, cells),
            jobs=pool.count_jobs(),
            retries=config.retries,
            table=Table(),
        )
        coordinator.run()
    if coordinator.failed:
        _report_failures(root, coordinator.failed, coordinator.gave_up)
    print(f"all {len(cells)} cells are finished")


def _report_failures(root, failed, gave_up=False):
    for name, lines in failed.items():
        print(f"\n{root.path / 'cells' / name}.log:")
        print("\n".join(f"    {line}" for line in lines[-5:]))
    if gave_up:
        raise TrainingError(
            f"{len(failed)} cells failed, see above, the last ones one after "
            "the other: the reason may be this machine, such as a full disk. "
            "Fix this and run the same command with --retry_failed=true; or "
            "run it as it was to go on with the other cells."
        )
    raise TrainingError(
        f"{len(failed)} cells failed, see above: run the same command with "
        "--retry_failed=true to run them again."
    )


def _list_commands(root, cells, all_of_them):
    """Prints the commands of cells with their states, or the first ones."""
    shown = len(cells) if all_of_them else SHOWN
    for cell in cells[:shown]:
        job = root.make_job(cell)
        command = [
            *("python", "-m", *job.arguments),
            f"--workdir={job.workdir}",
        ]
        print(f"{root.find_state(cell)}: {shlex.join(command)}")
    if cells[shown:]:
        print(f"{len(cells[shown:])} more: --dry_run=all lists all commands")


def _describe(root, grid, cells):
    """Prints the number of cells in each state, and what they cost."""
    states = [root.find_state(cell) for cell in cells]
    counts = (
        f"{states.count(state)} {state}" for state in dict.fromkeys(states)
    )
    print(f"{grid.title}, {grid.size}: {', '.join(counts)}")
    left = [
        cell
        for cell, state in zip(cells, states, strict=True)
        if state != "finished"
    ]
    seconds, unknown = root.estimate(cells)(left)
    if seconds:
        time = format_seconds(seconds)
        print(f"estimated time, with one cell after the other: {time}")
    if unknown:
        print(
            f"no estimate for {unknown} cells: none of their trainer has "
            "begun; --measure=true begins one of each row"
        )


if __name__ == "__main__":
    run(SweepConfig, {}, main)
