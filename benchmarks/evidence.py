"""Compares plain and randomized encodings on several tasks with two seeds.

Trains small models on lengths 1 to 20 and tests them on lengths 25 to 100.
Writes every run with its command, and a table of the scores and floors.

    python -m benchmarks.evidence
"""

import pathlib

from absl import app, flags

from benchmarks.measure import DEFINE_count, write_report
from benchmarks.runs import format_table, run_all

FLAGS = flags.FLAGS
flags.DEFINE_list(
    "tasks",
    [
        "even_pairs",
        "missing_duplicate_string",
        "reverse_string",
        "bucket_sort",
        "stack_manipulation",
    ],
    "Tasks to train.",
)
flags.DEFINE_list(
    "encodings",
    [
        "RoPE",
        "RandomizedRoPE",
        "RelativeEncoding",
        "RandomizedRelativeEncoding",
    ],
    "Encodings to train.",
)
DEFINE_count("seeds", 2, "Number of seeds of every task and encoding.")
DEFINE_count("steps", 3000, "Number of training steps of every run.")
DEFINE_count("jobs", 2, "Number of runs at a time.")
flags.DEFINE_string(
    "root", "runs/evidence", "Directory for the working directories."
)
flags.DEFINE_string(
    "output", "benchmarks/results/evidence.json", "File for the report."
)


def main(argv):
    """Trains the models that are missing, then writes report and table."""
    del argv
    rows = [
        {
            "task": task,
            "encoding": encoding,
            "seed": seed,
            "steps": FLAGS.steps,
            "train_length": "1-20",
            "test_lengths": "25-100:5",
        }
        for seed in range(FLAGS.seeds)
        for encoding in FLAGS.encodings
        for task in FLAGS.tasks
    ]
    rows = run_all(rows, root=FLAGS.root, jobs=FLAGS.jobs)
    rows.sort(
        key=lambda row: (
            FLAGS.tasks.index(row["task"]),
            FLAGS.encodings.index(row["encoding"]),
            row["seed"],
        )
    )
    path = pathlib.Path(FLAGS.output)
    write_report(path, "benchmarks.evidence", {"rows": rows})
    title = "Plain against randomized encodings"
    path.with_suffix(".md").write_text(format_table(title, rows))


if __name__ == "__main__":
    app.run(main)
