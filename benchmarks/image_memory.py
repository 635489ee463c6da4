"""Measures the memory of the published image model on a CPU.

Trains one step of `trainers.imagenet --preset=paper`, 32 images of 506 tokens,
and evaluates images of 2,025 tokens, in a process of its own for each encoding.
The report is written after every encoding; those that it has are not repeated.

    python -m benchmarks.image_memory
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from absl import app, flags

from benchmarks.measure import run_measured, write_report
from keras_lengen.layers import ENCODINGS

FLAGS = flags.FLAGS
flags.DEFINE_list(
    "encodings",
    # The others cannot be in an encoder.
    [name for name, encoding in ENCODINGS.items() if not encoding.causal_only],
    "Encodings to measure.",
)
flags.DEFINE_list(
    "flags",
    ["evaluation_examples=4", "chunk_size=64"],
    "Further flags of the trainer, without --.",
)
flags.DEFINE_string(
    "output", "benchmarks/results/image_memory.json", "File for the report."
)


def make_command(encoding):
    """Returns the command of the trainer, a list of str."""
    return [
        *("python", "-m", "trainers.imagenet"),
        *("--preset=paper", "--dataset=noise"),
        *(f"--encoding={encoding}", "--steps=1", "--strategy=one_device"),
        *(f"--{flag}" for flag in FLAGS.flags),
    ]


def measure(encoding):
    """Runs the trainer; returns a row of the report."""
    command = make_command(encoding)
    with tempfile.TemporaryDirectory() as directory:
        measured = run_measured(
            [sys.executable, *command[1:], f"--workdir={directory}/run"],
            stdout=subprocess.DEVNULL,
        )
    return {"encoding": encoding, "command": " ".join(command), **measured}


def main(argv):
    """Measures what is missing and reports."""
    del argv
    path = pathlib.Path(FLAGS.output)
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    for encoding in FLAGS.encodings:
        if " ".join(make_command(encoding)) in [row["command"] for row in rows]:
            continue
        rows.append(measure(encoding))
        print(f"{encoding}: {rows[-1]['peak_gibibytes']:.1f} GiB", flush=True)
        write_report(FLAGS.output, "benchmarks.image_memory", {"rows": rows})


if __name__ == "__main__":
    app.run(main)
