"""Compares training on short and on long sequences by time and accuracy.

Trains a randomized encoding on short sequences, and its plain form on sequences
as long as the test sequences, like Figure 2 of Ruoss et al., 2023, at a size
for a CPU.

    python -m benchmarks.efficiency
"""

import csv
import pathlib

import numpy as np
from absl import app, flags

from benchmarks.measure import DEFINE_count, write_report
from benchmarks.runs import define_flags, make_row, train
from trainers.records.plot import add_legend, draw_curves, save_figure
from trainers.records.styles import choose_styles

FLAGS = flags.FLAGS
define_flags("efficiency", jobs=2)
flags.DEFINE_string("task", "missing_duplicate_string", "Task to train.")
flags.DEFINE_string("encoding", "RelativeEncoding", "The plain encoding.")
flags.DEFINE_string(
    "short", "1-20", "Trained lengths of the randomized encoding."
)
flags.DEFINE_string("long", "1-100", "Trained lengths of the plain encoding.")
DEFINE_count("steps", 3000, "Number of training steps on short sequences.")
DEFINE_count("long_steps", 3000, "Number of training steps on long sequences.")
DEFINE_count("points", 15, "Number of evaluations of each run.")


def read_curve(workdir):
    """Reads mean accuracy and training time of every evaluation of a run."""
    by_step = {}
    with (workdir / "metrics.csv").open() as file:
        for line in csv.DictReader(file):
            longer = int(line["length"] or 0) > int(FLAGS.short.split("-")[1])
            if line["metric"] == "accuracy" and longer:
                point = by_step.setdefault(int(line["step"]), ([], []))
                point[0].append(float(line["seconds"]))
                point[1].append(float(line["value"]))
    return [
        {"step": step, "seconds": max(seconds), "accuracy": np.mean(values)}
        for step, (seconds, values) in sorted(by_step.items())
    ]


def plot(path, curves):
    """Plots accuracy against training time."""
    from matplotlib import figure

    picture = figure.Figure(figsize=(6, 4))
    axes = picture.subplots()
    by_time = {
        label: {point["seconds"]: point["accuracy"] for point in points}
        for label, points in curves.items()
    }
    draw_curves(axes, by_time, choose_styles(by_time))
    axes.set(
        xlabel="training time in seconds",
        ylim=(0, 1.03),
        ylabel="mean accuracy at lengths 25 to 100",
        title=FLAGS.task,
    )
    axes.grid(alpha=0.3)
    add_legend(axes)
    save_figure(picture, path)


def main(argv):
    """Trains both at the same time, each on half of the cores; plots both."""
    del argv
    rows = [
        make_row(
            "algorithmic",
            {
                "task": FLAGS.task,
                "encoding": encoding,
                "seed": 0,
                "steps": steps,
                "train_length": lengths,
                "test_lengths": "25-100:5",
                "max_position": 128,
                "evaluate_every": steps // FLAGS.points,
            },
            label=f"{encoding}, trained on {lengths}",
        )
        for encoding, lengths, steps in (
            (f"Randomized{FLAGS.encoding}", FLAGS.short, FLAGS.steps),
            (FLAGS.encoding, FLAGS.long, FLAGS.long_steps),
        )
    ]
    curves = {
        row.columns["label"]: read_curve(workdir)
        for row, (workdir, _) in zip(rows, train(rows), strict=True)
    }
    for label, points in curves.items():
        print(label)
        for point in points:
            print(f"{point['seconds']:8.0f} s {point['accuracy']:7.3f}")
    path = pathlib.Path(FLAGS.output)
    content = {
        "commands": [row.command for row in rows],
        "curves": curves,
    }
    write_report(path, "benchmarks.efficiency", content)
    plot(path.with_suffix(".png"), curves)


if __name__ == "__main__":
    app.run(main)
