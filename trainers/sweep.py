"""Trains all models of a table, a figure or a grid of your own.

    python -m trainers.sweep --grid=my_grid.py
    python -m trainers.sweep --grid=ruoss_table_1 --dry_run
    python -m trainers.sweep --grid=ruoss_table_1 --jobs=2
    python -m trainers.sweep --grid=ruoss_table_1 --size=paper --shard=3/64
    python -m trainers.sweep --grid=ruoss_table_1 --engine=ray --address=auto

A grid of your own is a Python file with `RUNS`, a list of dicts of flags, each
also with its trainer:

    RUNS = [
        {"trainer": "algorithmic", "encoding": encoding, "seed": seed}
        for encoding in ("RoPE", "RandomizedRoPE")
        for seed in range(3)
    ]

A run of a grid is one command of a trainer with its own working directory below
the root directory, named after its flags and their digest. Finished runs are
skipped, others begin or resume. Several such commands may share a root, on
several machines and with either engine: a lock keeps two of them from training
the same run.
"""

import shlex

from trainers.options import command
from trainers.records.progress import format_seconds
from trainers.sweeps.grids import open_grid
from trainers.sweeps.grids.grid import list_runs, take_shard
from trainers.sweeps.options import SweepConfig, parse_shard, split_flags
from trainers.sweeps.overrides import with_overrides
from trainers.sweeps.root import find_root
from trainers.sweeps.training import measure, open_root, train_all

SHOWN = 3
"""Number of commands that a dry run lists, unless it lists all."""


def main(config):
    """Trains the runs of a grid that are not finished."""
    grid = open_grid(config.grid, config.size)
    given = split_flags(config.flags)
    runs, arguments = with_overrides(list_runs(grid.runs), given)
    runs = take_shard(list_runs(runs), *parse_shard(config.shard))
    path = find_root(config.root, grid)
    root = open_root(path, arguments)
    for run in runs:
        root.make_config(run)
    if config.measure:
        measure(config, root, runs)
    ends = config.dry_run or config.measure
    if config.retry_failed and not ends:
        for run in runs:
            if root.find_state(run) == "failed":
                root.forget_failure(run)
    _describe(root, grid, runs)
    if config.dry_run:
        _list_commands(root, runs, config.all_commands)
    if not ends:
        train_all(config, root, runs)


def _list_commands(root, runs, all_of_them):
    """Prints the commands of runs with their states, or the first ones."""
    shown = len(runs) if all_of_them else SHOWN
    for run in runs[:shown]:
        job = root.make_job(run)
        words = ["python", "-m", *job.arguments, f"--workdir={job.workdir}"]
        print(f"{root.find_state(run)}: {shlex.join(words)}")
    if runs[shown:]:
        print(f"{len(runs[shown:])} more: --all_commands lists all of them")


def _describe(root, grid, runs):
    """Prints the number of runs in each state, and what they cost."""
    states = [root.find_state(run) for run in runs]
    counts = (
        f"{states.count(state)} {state}" for state in dict.fromkeys(states)
    )
    name = ", ".join(filter(None, [grid.title, grid.size]))
    print(f"{name}: {', '.join(counts)}")
    left = [
        run
        for run, state in zip(runs, states, strict=True)
        if state != "finished"
    ]
    seconds, unknown = root.estimate(runs)(left)
    if seconds:
        time = format_seconds(seconds)
        print(f"estimated time, with one run after the other: {time}")
    if unknown:
        print(
            f"no estimate for {unknown} runs: none of their trainer has "
            "begun; --measure begins one of each row"
        )


if __name__ == "__main__":
    command.run(SweepConfig, {}, main)
