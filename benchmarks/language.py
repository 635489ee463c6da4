"""Losses of encodings on text, at and beyond the trained length.

Trains the small model of `trainers.enwik8` on `python_source`, which every
machine has, then continues the model with RoPE with other encodings. A run that
has finished is not repeated, and one that was interrupted is resumed.

    python -m benchmarks.language
"""

import math

from absl import app, flags

from benchmarks.runs import define_flags, make_row, report

FLAGS = flags.FLAGS
define_flags("language", jobs=1)
flags.DEFINE_list(
    "encodings",
    [
        "SinusoidalEncoding",
        "RoPE",
        "RandomizedRoPE",
        "ALiBi",
        "LogKERPLE",
        "NoPE",
    ],
    "Encodings to train.",
)
flags.DEFINE_list(
    "finetuned",
    ["RoPE", "RandomizedRoPE", "ALiBi"],
    "Encodings to continue the model with RoPE with; none: leave this out.",
)
FINETUNING = {"steps": 500, "learning_rate": 3e-4}


def list_rows():
    """Lists the `Row` of every run."""
    source = _make_row("RoPE")
    continued = [
        make_row(
            "enwik8",
            {**FINETUNING, "encoding": encoding},
            after=source,
            run=f"{encoding}-from-RoPE",
        )
        for encoding in FLAGS.finetuned
    ]
    return [*map(_make_row, FLAGS.encodings), *continued]


def _make_row(encoding):
    given = {"dataset": "python_source", "encoding": encoding}
    return make_row("enwik8", given, run=encoding)


def measure(row, workdir, results):
    """Returns the losses of a finished run.

    `last_quarter` has bits in the last quarter of the windows of a length.
    """
    del row, workdir
    final = results["final"]
    last_quarter = {}
    for length, by_position in final["nats_per_byte_by_position"].items():
        late = [
            nats
            for position, nats in by_position.items()
            if int(position) >= 3 * int(length) / 4
        ]
        last_quarter[length] = sum(late) / len(late) / math.log(2)
    names = (
        "bits_per_character_by_length",
        "nats_per_byte_by_length",
        "nats_per_byte_low_by_length",
        "nats_per_byte_high_by_length",
        "loss_by_length",
        "unseen_positions_by_length",
        "unseen_distances_by_length",
    )
    return {
        "last_quarter": last_quarter,
        **{name: final[name] for name in names if name in final},
    }


def main(argv):
    """Trains what is missing, and reports."""
    del argv
    for row in report("language", list_rows(), measure):
        print(row["run"], row["bits_per_character_by_length"])


if __name__ == "__main__":
    app.run(main)
