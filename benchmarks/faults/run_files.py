"""Reads the files of a working directory, without times and paths."""

import csv
import json

import numpy as np


def find_checkpoints(path):
    """Finds the checkpoints of a run, `{step: file}` in ascending order."""
    found = (path / "checkpoints").glob("checkpoint-*.npz")
    by_step = {int(file.stem.partition("-")[2]): file for file in found}
    return dict(sorted(by_step.items()))


def read_state(file):
    """Reads every bit of a checkpoint except its training time."""
    with np.load(file) as arrays:
        return {
            name: (arrays[name].dtype.str, arrays[name].tobytes())
            for name in arrays.files
            if name != "seconds"
        }


def read_metrics(path):
    """Reads the whole rows of `metrics.csv` without their times."""
    if not (path / "metrics.csv").exists():
        return []
    text = (path / "metrics.csv").read_text().rstrip("\0")
    return [
        (row["step"], row["metric"], row["length"], row["value"])
        for row in csv.DictReader(text.rpartition("\n")[0].splitlines())
    ]


def read_outcome(path):
    """Reads all that equal runs leave in common when they finish."""
    rows = read_metrics(path)
    results = json.loads((path / "results.json").read_text())
    del results["train"], results["config"]
    return {
        "losses": [row for row in rows if row[1] == "train_loss"],
        # An evaluation that was started twice writes its first rows twice.
        "evaluations": {row for row in rows if row[1] != "train_loss"},
        "results": results,
        "best weights": {
            file.name: read_state(file)
            for file in (path / "checkpoints").glob("best-*.npz")
        },
        "plot": (path / "length_generalization.png").exists(),
    }
