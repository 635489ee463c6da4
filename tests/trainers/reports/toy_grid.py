"""A small grid, and runs of it that are written by hand."""

import json
import types

from tests.trainers.toy import toy_config
from trainers.populations.options import PopulationConfig
from trainers.populations.records import describe_members
from trainers.reports.reading import find_workdirs, read_saved, report_run
from trainers.sweeps.grids import Grid, Run

ROWS = ("even_pairs", "reverse_string")
COLUMNS = ("RoPE", "RandomizedRoPE")


def make_grid(rows=ROWS, columns=COLUMNS, seeds=2, rates=(1e-3,), **fields):
    runs = tuple(
        Run(
            trainer="algorithmic",
            flags={
                "task": row,
                "encoding": column,
                "seed": seed,
                "learning_rate": rate,
            },
            row=row,
            column=column,
        )
        for row in rows
        for column in columns
        for seed in range(seeds)
        for rate in rates
    )
    known = {
        "name": "toy",
        "title": "Toy: accuracy",
        "size": "small",
        "score": "score",
        "unit": "%",
        "published": ("ruoss_2023_table_1", "ruoss_2023_table_4"),
    }
    return Grid(runs=runs, **{**known, **fields})


def make_row(columns=("RoPE",), seeds=1, **fields):
    """Makes a grid of one row, without published numbers."""
    known = {"rows": ["even_pairs"], "published": ()}
    return make_grid(columns=columns, seeds=seeds, **{**known, **fields})


def write_runs(root, grid, scores):
    """Writes a run for each score; `None`: not begun, `...`: unfinished.

    The accuracy is the score at length 5, a tenth more at 6, and 1 at 3, which
    is trained.

    Returns:
        What a report reads of all runs.
    """
    for run, score in zip(grid.runs, scores, strict=True):
        if score is not None:
            found = None if score is ... else {3: 1, 5: score, 6: score + 0.1}
            write_run(root, run, found)
    return read_runs(root, grid)


def read_runs(root, grid):
    """Returns what a report reads of all runs of a grid."""
    paths, runs = find_workdirs(root), []
    for run in grid.runs:
        path = paths.get(run.digest)
        (saved,) = read_saved(path) if path else [None]
        runs.append(report_run(run, saved, grid))
    return runs


def write_run(root, run, accuracies=None, step=2, **flags):
    """Writes a run of a run with accuracies by length; `None`: unfinished."""
    path = root / "runs" / f"{run.row}-{run.column}-{run.digest}"
    config = toy_config(**{**run.flags, "test_lengths": "5,6", **flags})
    return write_files(path, config, accuracies, step)


def write_files(path, config, accuracies, step=2):
    """Writes the files of a run of a configuration; returns its directory."""
    if accuracies is None:
        return _write(path, "algorithmic", config)
    by_length = {str(n): value for n, value in accuracies.items()}
    unseen = [value for n, value in accuracies.items() if n > 3]
    score = sum(unseen) / len(unseen)
    floors = dict.fromkeys(by_length, 0.5)
    final = {
        "accuracy_by_length": by_length,
        "loss_by_length": by_length,
        "score": score,
        "step": step,
    }
    results = {
        "final": final,
        "best": final,
        "train": {"steps": step, "seconds": 7200 * score},
        "floor_by_length": floors,
        "position_only_by_length": {**floors, "6": 0.3},
    }
    return _write(path, "algorithmic", config, results)


def write_population(path, task, scores, *, diverged=(), **flags):
    """Writes a population with an accuracy for each member, or unfinished."""
    config = PopulationConfig(task=task, test_lengths="5,6", **flags)
    if scores is None:
        return _write(path, "population", config)
    members = types.SimpleNamespace(members=config.members)
    # Sums and counts of accuracy, exact matches and losses of each member.
    sums = {n: [[score, 1, 0, 1, 2, 1] for score in scores] for n in (5, 6)}
    results = {
        "floor_by_length": {"5": 0.5, "6": 0.5},
        "position_only_by_length": {"5": 0.4, "6": 0.4},
        "train": {"steps": config.steps, "seconds": 1.0},
        **describe_members(
            members, [1.0] * len(scores), sums, 3, dict.fromkeys(diverged, 7)
        ),
    }
    return _write(path, "population", config, results)


def _write(path, trainer, config, results=None):
    path.mkdir(parents=True, exist_ok=True)
    record = {"trainer": trainer, "digest": "0", "config": vars(config)}
    (path / "config.json").write_text(json.dumps(record))
    if results:
        record |= {"score_metric": "accuracy", "higher_is_better": True}
        (path / "results.json").write_text(json.dumps({**record, **results}))
    return path
