"""Whether the best methods of the frontier also answer structured problems.

`benchmarks.frontier` measures answers to problems of uniform digits. This
trains the methods that go beyond the trained lengths again, in the same way,
and evaluates them on each kind of problem: uniform digits, repeated digits,
runs, zeros and others. The best method is also trained with half of the
problems structured; sums then have a mark before each number.

Flags, resuming and the report are as in `benchmarks.frontier`.

    python -m benchmarks.kinds
"""

import functools
import json
import pathlib
import re

from absl import app, flags

from benchmarks.frontier import METHODS, list_arguments
from benchmarks.measure import DEFINE_count, write_report
from benchmarks.runs import describe, run_at_once, train_alone
from trainers.records.results import find_kinds
from trainers.records.workdir import read_results

FLAGS = flags.FLAGS
FLAGS.set_default("root", "runs/kinds")
FLAGS.set_default("output", "benchmarks/results/kinds.json")
EVALUATION = ("--kinds=all", "--evaluation_examples=224")
DEFINE_count("seeds", 1, "Number of seeds of the best method.")
BEST = "coupled near keys"
OTHERS = {
    "copy": ("DAPE", "RandomizedRelativeEncoding", "FIRE", "LogKERPLE"),
    "parity": ("Abacus",),
}
"""Other methods that go beyond the trained lengths, one seed each."""
STRUCTURED = {
    "addition": ("--task=marked_addition", "--structured=0.5"),
    "copy": ("--structured=0.5",),
    "reverse": ("--structured=0.5",),
    "parity": ("--structured=0.5",),
}
"""Flags that train on structured problems of each task."""


def choose_runs():
    """Lists the task, the method, the training and the seed of every run."""
    for seed in range(FLAGS.seeds):
        for training in ("uniform", "structured"):
            yield from ((task, BEST, training, seed) for task in STRUCTURED)
        if seed == 0:
            for task, methods in OTHERS.items():
                yield from ((task, name, "uniform", 0) for name in methods)


def measure(task, method, training, seed):
    """Trains a model, unless it is finished, and returns its row."""
    changes = STRUCTURED[task] if training == "structured" else ()
    arguments = list_arguments(task, method, seed, *EVALUATION, *changes)
    name = re.sub(r"\W+", "_", f"{task}-{method}-{training}-{seed}")
    workdir = pathlib.Path(FLAGS.root) / name
    train_alone(workdir, arguments, jobs=FLAGS.jobs)
    results = read_results(workdir / "results.json")
    return {
        "task": task,
        "method": method,
        "training": training,
        "seed": seed,
        **describe(workdir, arguments, results),
        "by_kind": find_kinds(results),
    }


def main(argv):
    """Trains what is missing, two models at a time, and reports."""
    del argv
    path = pathlib.Path(FLAGS.output)
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    done = {identify(row) for row in rows}
    order = list(choose_runs())
    missing = [
        run
        for run in order
        if run not in done and run[1] in (FLAGS.only or METHODS)
    ]
    calls = [functools.partial(measure, *run) for run in missing]
    for number, (_, row) in enumerate(run_at_once(calls, jobs=FLAGS.jobs), 1):
        rows.append(row)
        rows.sort(key=lambda row: order.index(identify(row)))
        lowest = min(min(by.values()) for by in row["by_kind"].values())
        print(
            f"{number}/{len(calls)} {row['run']}: lowest share {lowest:.3f}, "
            f"{row['training_seconds']:.0f} s",
            flush=True,
        )
        write_report(FLAGS.output, "benchmarks.kinds", {"rows": rows})


def identify(row):
    """Returns what distinguishes a row, as `choose_runs` lists it."""
    return row["task"], row["method"], row["training"], row["seed"]


if __name__ == "__main__":
    app.run(main)
