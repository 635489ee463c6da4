"""Exact match of written answers, at and beyond the trained lengths.

Trains small models of `trainers.sequence_to_answer`: copies with two layers,
and sums with a scratchpad and three layers, each with several encodings; and
parity with several scratchpads. The report is written after every run; runs
that it has are not repeated, and one that was interrupted is resumed.

    python -m benchmarks.answers
"""

from absl import app, flags

from benchmarks.runs import define_flags, make_row, report

FLAGS = flags.FLAGS
define_flags("answers", jobs=1)
flags.DEFINE_list("tasks", ["copy", "summation", "parity"], "Tasks to train.")
ENCODINGS = ("NoPE", "T5Bias", "ALiBi", "RoPE", "RandomizedRoPE", "WarpedRoPE")
SCRATCHPADS = ("all", "computation,output", "none")
LONG = {
    "train_length": "1-8",
    "test_lengths": "10,12,14,16",
    "batch_size": 64,
    "generated_examples": 50,
}
TASKS = {
    # The setting of figure 3 of "Improving Length Generalization via Position
    # Index Warping", which has ALiBi and RoPE.
    "copy": {
        "num_layers": 2,
        "train_length": "1-10",
        "test_lengths": "11-20",
        "steps": 6000,
    },
    "summation": {"scratchpad": SCRATCHPADS[1], **LONG},
}


def list_rows():
    """Yields the `Row` of every run."""
    for task, given in TASKS.items():
        for name in ENCODINGS:
            yield _make_row(name, task=task, encoding=name, **given)
    for fields in SCRATCHPADS:
        given = {"encoding": "T5Bias", "scratchpad": fields, **LONG}
        yield _make_row(fields, task="parity", **given)


def _make_row(variant, *, task, **given):
    name = f"{task}-{variant}"
    return make_row(
        "sequence_to_answer",
        {"task": task, **given},
        task=task,
        variant=variant,
        run=name,
    )


def measure(row, workdir, results):
    """Returns what the report has of a finished run."""
    del row, workdir
    return {
        "train_length": results["config"]["train_length"],
        "floor_by_length": results["floor_by_length"],
        **{
            name: values
            for name, values in results["final"].items()
            if name.startswith(("generated", "answers", "un", "seen"))
        },
    }


def main(argv):
    """Trains what is missing, and reports."""
    del argv
    rows = report(
        "answers",
        list(list_rows()),
        measure,
        chosen=lambda columns: columns["task"] in FLAGS.tasks,
    )
    for row in rows:
        print(row["run"], row["generated_exact_match_by_length"])


if __name__ == "__main__":
    app.run(main)
