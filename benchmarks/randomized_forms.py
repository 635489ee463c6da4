"""Which randomized form of relative encodings and ALiBi generalizes better?

Position differences against sampled distances, on two tasks and two seeds.

    python -m benchmarks.randomized_forms
"""

import pathlib

from absl import app, flags

from benchmarks.measure import (
    command_line,
    write_report,
)
from benchmarks.runs import run_all, table

FLAGS = flags.FLAGS
flags.DEFINE_integer("steps", 3000, "Training steps of every run.")
flags.DEFINE_integer("jobs", 2, "Runs at a time.")
flags.DEFINE_string("root", "runs/randomized_forms", "Working directories.")
flags.DEFINE_string(
    "output", "benchmarks/results/randomized_forms.json", "The report."
)


def main(argv):
    """Trains all and writes the report."""
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
    command = command_line("benchmarks.randomized_forms")
    path = pathlib.Path(FLAGS.output)
    write_report(path, command, {"rows": rows})
    title = "Randomized relative encodings: two kinds of distances"
    path.with_suffix(".md").write_text(table(title, rows))


if __name__ == "__main__":
    app.run(main)
