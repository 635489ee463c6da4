"""Accuracy of encodings on images that are larger than the trained ones.

Trains the small model of `trainers.imagenet` on the digits of scikit-learn,
which every machine has, with several encodings, plain and randomized. A run
that has finished is not repeated, and one that was interrupted is resumed.

    python -m benchmarks.images
"""

import json
import pathlib

from absl import app, flags

from benchmarks.measure import write_report
from benchmarks.runs import describe, train

FLAGS = flags.FLAGS
flags.DEFINE_list(
    "encodings",
    [
        name
        for plain in ("SinusoidalEncoding", "RoPE", "RelativeEncoding", "ALiBi")
        for name in (plain, f"Randomized{plain}")
    ]
    + ["axial RoPE", "randomized axial RoPE"],
    "Encodings to train; an axial one has positions of rows and of columns.",
)
flags.DEFINE_list("flags", [], "Further flags of the trainer, without --.")
flags.DEFINE_string(
    "root", "runs/images", "Directory for the working directories."
)
flags.DEFINE_string(
    "output", "benchmarks/results/images.json", "File for the report."
)
# Four times as many rows and columns as are trained, and more.
DRAWN = "RandomizedPositions(max_position=64)"
SAMPLERS = {
    "axial RoPE": "GridPositions",
    "randomized axial RoPE": f"GridPositions(row={DRAWN}, column={DRAWN})",
}


def list_arguments(name):
    """Returns the arguments of the command for an encoding of the table."""
    arguments = ["trainers.imagenet", "--dataset=digits"]
    if name in SAMPLERS:
        arguments += [
            "--encoding=AxialEncoding(row=RoPE, column=RoPE)",
            f"--sampler={SAMPLERS[name]}",
        ]
    else:
        arguments.append(f"--encoding={name}")
    return [*arguments, *(f"--{flag}" for flag in FLAGS.flags)]


def main(argv):
    """Trains what is missing, one model after the other, and reports."""
    del argv
    rows = []
    for name in FLAGS.encodings:
        workdir = pathlib.Path(FLAGS.root) / name.replace(" ", "_")
        arguments = list_arguments(name)
        results = train(workdir, arguments)
        measured = {
            key: results["final"][f"{key}_by_length"]
            for key in ("accuracy", "top_5_accuracy", "loss")
        }
        row = describe(workdir, arguments, results)
        sizes = {
            key: results["config"][key] for key in ("train_size", "test_sizes")
        }
        rows.append({**row, "encoding": name, **sizes, **measured})
        print(json.dumps({name: measured["accuracy"]}), flush=True)
    write_report(FLAGS.output, "benchmarks.images", {"rows": rows})


if __name__ == "__main__":
    app.run(main)
