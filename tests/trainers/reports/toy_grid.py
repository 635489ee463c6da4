"""A small grid, and runs of it that are written by hand."""

import json

from tests.trainers.toy import toy_config
from trainers.grids import Cell, Grid

ROWS = ("even_pairs", "reverse_string")
COLUMNS = ("RoPE", "RandomizedRoPE")


def make_grid(rows=ROWS, columns=COLUMNS, seeds=2, rates=(1e-3,), **fields):
    cells = tuple(
        Cell(
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
        "published": "ruoss_2023_table_1",
    }
    return Grid(cells=cells, **{**known, **fields})


def write_run(root, cell, accuracies=None, step=2):
    """Writes a run of a cell with accuracies by length; `None`: unfinished."""
    path = root / "cells" / f"{cell.row}-{cell.column}-{cell.digest}"
    path.mkdir(parents=True)
    config = vars(toy_config(**cell.flags, test_lengths="5,6"))
    record = {"trainer": "algorithmic", "digest": "0", "config": config}
    (path / "config.json").write_text(json.dumps(record))
    if accuracies is None:
        return path
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
        **record,
        "final": final,
        "best": final,
        "score_metric": "accuracy",
        "higher_is_better": True,
        "floor_by_length": floors,
        "position_only_by_length": {**floors, "6": 0.3},
    }
    (path / "results.json").write_text(json.dumps(results))
    return path
