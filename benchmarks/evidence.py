"""Compares plain and randomized encodings on several tasks with two seeds.

Trains small models on lengths 1 to 20 and tests them on lengths 25 to 100.
Writes every run with its command, and a table of the scores and floors.

    python -m benchmarks.evidence
"""

import pathlib

from absl import app, flags

from benchmarks.measure import DEFINE_count
from benchmarks.runs import (
    define_flags,
    format_table,
    make_comparison,
    report,
    summarize,
)

FLAGS = flags.FLAGS
define_flags("evidence", jobs=2)
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


def main(argv):
    """Trains the models that are missing, then writes report and table."""
    del argv
    rows = report(
        "evidence",
        [
            make_comparison(task, encoding, seed, FLAGS.steps)
            for task in FLAGS.tasks
            for encoding in FLAGS.encodings
            for seed in range(FLAGS.seeds)
        ],
        summarize,
    )
    title = "Plain against randomized encodings"
    path = pathlib.Path(FLAGS.output).with_suffix(".md")
    path.write_text(format_table(title, rows))


if __name__ == "__main__":
    app.run(main)
