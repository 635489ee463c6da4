"""Whether the best methods of the frontier also answer structured problems.

`benchmarks.frontier` measures answers to problems of uniform digits. This
trains the methods that go beyond the trained lengths again, in the same way,
and evaluates them on each kind of problem: uniform digits, repeated digits,
runs, zeros and others. The best method is also trained with half of the
problems structured; sums then have a mark before each number.

Flags, resuming and the report are as in `benchmarks.frontier`.

    python -m benchmarks.kinds
"""

from absl import app, flags

from benchmarks.frontier import FRONTIER, METHODS
from benchmarks.measure import DEFINE_count
from benchmarks.runs import report
from trainers.records.results import find_kinds

FLAGS = flags.FLAGS
FLAGS.set_default("root", "runs/kinds")
FLAGS.set_default("output", "benchmarks/results/kinds.json")
DEFINE_count("seeds", 1, "Number of seeds of the best method.")
EVALUATION = {"kinds": "all", "evaluation_examples": 224}
BEST = "coupled near keys"
FURTHER_METHODS = {
    "copy": ("DAPE", "RandomizedRelativeEncoding", "FIRE", "LogKERPLE"),
    "parity": ("Abacus",),
}
"""Other methods that go beyond the trained lengths, one seed each."""
STRUCTURED = {
    "addition": {"task": "marked_addition", "structured": 0.5},
    "copy": {"structured": 0.5},
    "reverse": {"structured": 0.5},
    "parity": {"structured": 0.5},
}
"""Flags that train on structured problems of each task."""


def list_rows():
    """Yields the `Row` of every run."""
    for seed in range(FLAGS.seeds):
        for training in ("uniform", "structured"):
            for task, given in STRUCTURED.items():
                changes = given if training == "structured" else {}
                yield _make_row(task, BEST, seed, training, changes)
        if seed == 0:
            for task, methods in FURTHER_METHODS.items():
                for name in methods:
                    yield _make_row(task, name, 0, "uniform")


def _make_row(task, method, seed, training, changes=()):
    changes = {**EVALUATION, **dict(changes)}
    return FRONTIER.make_run(task, method, seed, changes, training=training)


def measure(row, workdir, results):
    """Returns what the report has of a finished run."""
    del row, workdir
    return {"by_kind": find_kinds(results)}


def main(argv):
    """Trains what is missing, and reports."""
    del argv
    rows = report(
        "kinds",
        list(list_rows()),
        measure,
        chosen=lambda columns: columns["method"] in (FLAGS.only or METHODS),
    )
    for row in rows:
        lowest = min(min(by.values()) for by in row["by_kind"].values())
        print(
            f"{row['task']}, {row['method']}, {row['training']}, seed "
            f"{row['seed']}: lowest share {lowest:.3f}"
        )


if __name__ == "__main__":
    app.run(main)
