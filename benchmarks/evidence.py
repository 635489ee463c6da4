"""Plain against randomized encodings on several tasks, from two seeds.

Trains small models on lengths 1 to 20, tests them on lengths 25 to 100, and
writes every run and its command, and a table of the scores beside the floors.

    python -m benchmarks.evidence
"""

import pathlib

from absl import app, flags

from benchmarks.measure import (
    command_line,
    write_report,
)
from benchmarks.runs import run_all, table

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
flags.DEFINE_integer("seeds", 2, "Seeds of every task and encoding.")
flags.DEFINE_integer("steps", 3000, "Training steps of every run.")
flags.DEFINE_integer("jobs", 2, "Runs at a time.")
flags.DEFINE_string("root", "runs/evidence", "Working directories.")
flags.DEFINE_string(
    "output", "benchmarks/results/evidence.json", "Where the report goes."
)


def main(argv):
    """Trains all that is not trained yet and writes report and table."""
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
    command = command_line("benchmarks.evidence")
    write_report(path, command, {"rows": rows})
    title = "Plain against randomized encodings"
    path.with_suffix(".md").write_text(table(title, rows))


if __name__ == "__main__":
    app.run(main)
