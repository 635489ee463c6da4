"""Accuracy of encodings on images that are larger than the trained ones.

Trains the small model of `trainers.imagenet` on the digits of scikit-learn,
which every machine has, with several encodings, plain and randomized. A run
that has finished is not repeated, and one that was interrupted is resumed.

    python -m benchmarks.images
"""

from absl import app, flags

from benchmarks.runs import define_flags, make_row, report

FLAGS = flags.FLAGS
define_flags("images", jobs=1)
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
# Four times as many rows and columns as are trained, and more.
DRAWN = "RandomizedPositions(max_position=64)"
SAMPLERS = {
    "axial RoPE": "GridPositions",
    "randomized axial RoPE": f"GridPositions(row={DRAWN}, column={DRAWN})",
}


def make_run(name):
    """Makes the `Row` of an encoding of the table."""
    chosen = {"encoding": name}
    if name in SAMPLERS:
        chosen = {
            "encoding": "AxialEncoding(row=RoPE, column=RoPE)",
            "sampler": SAMPLERS[name],
        }
    return make_row(
        "imagenet", {"dataset": "digits", **chosen}, run=name, encoding=name
    )


def measure(row, workdir, results):
    """Returns what the report has of a finished run."""
    del row, workdir
    return {
        **{key: results["config"][key] for key in ("train_size", "test_sizes")},
        **{
            key: results["final"][f"{key}_by_length"]
            for key in ("accuracy", "top_5_accuracy", "loss")
        },
    }


def main(argv):
    """Trains what is missing, and reports."""
    del argv
    rows = report("images", list(map(make_run, FLAGS.encodings)), measure)
    for row in rows:
        print(row["encoding"], row["accuracy"])


if __name__ == "__main__":
    app.run(main)
