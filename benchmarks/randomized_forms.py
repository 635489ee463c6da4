"""Which randomized form of relative encodings and ALiBi generalizes better?

Compares position differences and sampled distances on two tasks, two seeds.

    python -m benchmarks.randomized_forms
"""

import pathlib

from absl import app, flags

from benchmarks.measure import DEFINE_count, write_report
from benchmarks.runs import format_table, run_all

FLAGS = flags.FLAGS
DEFINE_count("steps", 3000, "Number of training steps of every run.")
DEFINE_count("jobs", 2, "Number of runs at a time.")
flags.DEFINE_string(
    "root", "runs/randomized_forms", "Directory for the working directories."
)
flags.DEFINE_string(
    "output", "benchmarks/results/randomized_forms.json", "File for the report."
)


def main(argv):
    """Trains the models that are missing, then writes report and table."""
    del argv
    rows = [
        {
            "task": task,
            "encoding": f"{encoding}(distances='{distances}')",
            "seed": seed,
            "steps": FLAGS.steps,
            "train_length": "1-20",
            "test_lengths": "25-100:5",
        }
        for seed in range(2)
        for task in ("missing_duplicate_string", "reverse_string")
        for encoding in ("RandomizedRelativeEncoding", "RandomizedALiBi")
        for distances in ("positions", "sampled")
    ]
    rows = run_all(rows, root=FLAGS.root, jobs=FLAGS.jobs)
    path = pathlib.Path(FLAGS.output)
    write_report(path, "benchmarks.randomized_forms", {"rows": rows})
    title = "Randomized relative encodings: two kinds of distances"
    path.with_suffix(".md").write_text(format_table(title, rows))


if __name__ == "__main__":
    app.run(main)
