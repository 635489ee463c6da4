"""Losses of encodings on text, at and beyond the trained length.

Trains the small model of `trainers.enwik8` on `python_source`, which every
machine has, then continues the model with RoPE with other encodings. A run that
has finished is not repeated, and one that was interrupted is resumed.

    python -m benchmarks.language
"""

import json
import math
import pathlib

from absl import app, flags

from benchmarks.measure import write_report
from benchmarks.runs import describe, train

FLAGS = flags.FLAGS
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
flags.DEFINE_list("flags", [], "Further flags of the trainer, without --.")
flags.DEFINE_string(
    "root", "runs/language", "Directory for the working directories."
)
flags.DEFINE_string(
    "output", "benchmarks/results/language.json", "File for the report."
)
FINETUNING = {"steps": "500", "learning_rate": "3e-4"}


def list_commands():
    """Yields the working directory and the arguments of every command."""
    given = dict(flag.split("=", 1) for flag in FLAGS.flags)
    root = pathlib.Path(FLAGS.root)
    for encoding in FLAGS.encodings:
        yield (
            root / encoding,
            [
                *("trainers.enwik8", "--dataset=python_source"),
                *_write_flags(encoding=encoding, **given),
            ],
        )
    for encoding in FLAGS.finetuned:
        yield (
            root / f"{encoding}-from-RoPE",
            [
                *("trainers.finetune", str(root / "RoPE")),
                *_write_flags(**{**FINETUNING, "encoding": encoding, **given}),
            ],
        )


def _write_flags(**flags):
    return [f"--{name}={value}" for name, value in flags.items()]


def summarize(results):
    """Returns the losses of a finished run, from its results.

    `last_quarter` has bits in the last quarter of the windows of a length.
    """
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
    """Trains what is missing, one model after the other, and reports."""
    del argv
    rows = []
    for workdir, arguments in list_commands():
        results = train(workdir, arguments)
        row = describe(workdir, arguments, results)
        rows.append({**row, **summarize(results)})
        print(json.dumps(rows[-1]["bits_per_character_by_length"]), flush=True)
    write_report(FLAGS.output, "benchmarks.language", {"rows": rows})


if __name__ == "__main__":
    app.run(main)
