"""Exact match of written answers, at and beyond the trained lengths.

Trains small models of `trainers.sequence_to_answer`: copies with two layers,
and sums with a scratchpad and three layers, each with several encodings; and
parity with several scratchpads. The report is written after every run; runs
that it has are not repeated, and one that was interrupted is resumed.

    python -m benchmarks.answers
"""

import json
import pathlib

from absl import app, flags

from benchmarks.measure import write_report
from benchmarks.runs import describe, train, write_command

FLAGS = flags.FLAGS
flags.DEFINE_list("tasks", ["copy", "summation", "parity"], "Tasks to train.")
flags.DEFINE_list("flags", [], "Further flags of the trainer, without --.")
flags.DEFINE_string(
    "root", "runs/answers", "Directory for the working directories."
)
flags.DEFINE_string(
    "output", "benchmarks/results/answers.json", "File for the report."
)
ENCODINGS = ("NoPE", "T5Bias", "ALiBi", "RoPE", "RandomizedRoPE", "WarpedRoPE")
SCRATCHPADS = ("all", "computation,output", "none")
LONG = (
    *("--train_length=1-8", "--test_lengths=10,12,14,16"),
    *("--batch_size=64", "--generated_examples=50"),
)
TASKS = {
    # The setting of figure 3 of "Improving Length Generalization via Position
    # Index Warping", which has ALiBi and RoPE.
    "copy": (
        *("--num_layers=2", "--train_length=1-10", "--test_lengths=11-20"),
        "--steps=6000",
    ),
    "summation": (f"--scratchpad={SCRATCHPADS[1]}", *LONG),
}


def list_runs():
    """Yields the task, the variant and the flags of every run."""
    for task, given in TASKS.items():
        for encoding in ENCODINGS:
            yield (
                task,
                encoding,
                (f"--task={task}", f"--encoding={encoding}", *given),
            )
    for fields in SCRATCHPADS:
        yield (
            "parity",
            fields,
            (
                *("--task=parity", "--encoding=T5Bias"),
                f"--scratchpad={fields}",
                *LONG,
            ),
        )


def main(argv):
    """Trains what is missing, one model after the other, and reports."""
    del argv
    path = pathlib.Path(FLAGS.output)
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    rows = {row["command"]: row for row in rows}
    runs = {}
    for task, variant, given in list_runs():
        more = (f"--{flag}" for flag in FLAGS.flags)
        arguments = ["trainers.sequence_to_answer", *given, *more]
        runs[write_command(arguments)] = task, variant, arguments
    for command, (task, variant, arguments) in runs.items():
        if command in rows or task not in FLAGS.tasks:
            continue
        workdir = pathlib.Path(FLAGS.root) / f"{task}-{variant}"
        results = train(workdir, arguments)
        measured = {
            name: values
            for name, values in results["final"].items()
            if name.startswith(("generated", "answers", "un", "seen"))
        }
        rows[command] = {
            "task": task,
            "variant": variant,
            "train_length": results["config"]["train_length"],
            "floor_by_length": results["floor_by_length"],
            **describe(workdir, arguments, results),
            **measured,
        }
        exact = measured["generated_exact_match_by_length"]
        print(json.dumps({f"{task}, {variant}": exact}), flush=True)
        ordered = [rows[command] for command in runs if command in rows]
        write_report(FLAGS.output, "benchmarks.answers", {"rows": ordered})


if __name__ == "__main__":
    app.run(main)
