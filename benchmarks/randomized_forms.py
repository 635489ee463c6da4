"""Which randomized form of relative encodings and ALiBi generalizes better?

Compares position differences and sampled distances on two tasks, two seeds.

    python -m benchmarks.randomized_forms
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
define_flags("randomized_forms", jobs=2)
DEFINE_count("steps", 3000, "Number of training steps of every run.")


def main(argv):
    """Trains the models that are missing, then writes report and table."""
    del argv
    encodings = [
        f"{encoding}(distances='{distances}')"
        for encoding in ("RandomizedRelativeEncoding", "RandomizedALiBi")
        for distances in ("positions", "sampled")
    ]
    rows = report(
        "randomized_forms",
        [
            make_comparison(task, encoding, seed, FLAGS.steps)
            for seed in range(2)
            for task in ("missing_duplicate_string", "reverse_string")
            for encoding in encodings
        ],
        summarize,
    )
    title = "Randomized relative encodings: two kinds of distances"
    path = pathlib.Path(FLAGS.output).with_suffix(".md")
    path.write_text(format_table(title, rows))


if __name__ == "__main__":
    app.run(main)
