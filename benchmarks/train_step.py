"""Compares the training speed of every encoding with that of Keras layers.

The peer is an encoder of the same size made of `keras.layers`, with
`keras.layers.MultiHeadAttention` and without positions.

    python -m benchmarks.train_step
"""

import statistics

from absl import app, flags

from benchmarks.encoders import (
    make_encoder,
    make_keras_encoder,
    make_training_step,
)
from benchmarks.measure import (
    DEFINE_count,
    DEFINE_names,
    compare_speeds,
    time_in_turns,
    write_report,
)
from keras_lengen.layers import ENCODINGS

FLAGS = flags.FLAGS
flags.DEFINE_list("shapes", ["128x41", "8x512"], "Batch size x tokens.")
BIDIRECTIONAL = [name for name in ENCODINGS if not ENCODINGS[name].causal_only]
DEFINE_names("encodings", BIDIRECTIONAL, "Encodings to measure.", BIDIRECTIONAL)
DEFINE_count("rounds", 7, "Number of turns of every encoding.")
DEFINE_count("repeats", 3, "Number of training steps in a turn.")
flags.DEFINE_bool(
    "compile", False, "Whether XLA compiles the forward and backward pass."
)
flags.DEFINE_string(
    "output", "benchmarks/results/train_step.json", "File for the report."
)

PEER = "keras.layers.MultiHeadAttention"


def measure(batch_size, tokens):
    """Measures all encodings at one shape; returns rows of the table."""
    models = {PEER: make_keras_encoder()}
    models.update({name: make_encoder(name) for name in FLAGS.encodings})
    seconds = time_in_turns(
        {
            name: make_training_step(
                model, batch_size, tokens, compile=FLAGS.compile
            )
            for name, model in models.items()
        },
        rounds=FLAGS.rounds,
        repeats=FLAGS.repeats,
    )
    rows = []
    for name, times in seconds.items():
        row = {
            "batch_size": batch_size,
            "tokens": tokens,
            "encoding": name,
            "steps_per_second": 1 / statistics.median(times),
            "ratio_to_keras": compare_speeds(times, seconds[PEER]),
        }
        plain = name.removeprefix("Randomized")
        if plain != name and plain in seconds:
            row["ratio_to_plain_form"] = compare_speeds(times, seconds[plain])
        rows.append(row)
        print(
            f"{batch_size:4d} x {tokens:<5d}{name:32s}"
            f"{row['steps_per_second']:7.2f} steps/s"
            f"{row['ratio_to_keras']:7.2f} of Keras"
            + (
                f"{row['ratio_to_plain_form']:7.2f} of {plain}"
                if "ratio_to_plain_form" in row
                else ""
            ),
            flush=True,
        )
    return rows


def main(argv):
    """Measures all shapes and writes the report."""
    del argv
    rows = []
    for shape in FLAGS.shapes:
        batch_size, tokens = map(int, shape.split("x"))
        rows += measure(batch_size, tokens)
    write_report(
        FLAGS.output,
        "benchmarks.train_step",
        {"compile": FLAGS.compile, "rows": rows},
    )


if __name__ == "__main__":
    app.run(main)
