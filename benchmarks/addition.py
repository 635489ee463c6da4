"""Sums of numbers that are up to 200 times as long as the trained ones.

Trains the models of the preset `addition`: one with ordinal positions, and with
several seeds those with coupled positions, which are also tested on even longer
numbers. They write sums of uniform digits and of each structured kind. Further
runs change one choice of the model with coupled positions each: they show what
the exactness depends on.

Two commands run at a time, a core each. The report is written after every run;
runs that it has are not repeated, and an interrupted one is resumed.

    python -m benchmarks.addition
"""

import subprocess
import sys

from absl import app, flags

from benchmarks.measure import DEFINE_count
from benchmarks.runs import define_flags, make_row, report
from trainers.answers.options import DEMONSTRATIONS
from trainers.records.results import find_kinds
from trainers.records.workdir import read_results

FLAGS = flags.FLAGS
define_flags("addition", jobs=2)
DEFINE_count("seeds", 3, "Number of seeds.")
flags.DEFINE_list("digits", ["1000", "2000"], "Even longer numbers.")
DEFINE_count("answers", 14, "Answers at each of these lengths.")
CHANGES = {
    "no mark before numbers": {"task": "aligned_addition"},
    "trained on uniform digits only": {"structured": 0.0},
    "neither": {"task": "aligned_addition", "structured": 0.0},
    "far keys damped, not hidden": {"encoding": "ClippedBias(max_distance=3)"},
    "`RoPE` in place of `ClippedBias`": {"encoding": "RoPE"},
    "ordinal positions, no key hidden": {
        "encoding": "ClippedBias(slope=0)",
        "sampler": "OrdinalPositions",
    },
}
"""Flags that change choices of the model with coupled positions; one seed."""
MEASURED = (
    "generated_exact_match_by_length",
    "exact_match_by_length",
    "token_accuracy_by_length",
    "answers_by_length",
    "unfinished_by_length",
    "mistakes",
)


def list_rows():
    """Yields the `Row` of every run."""
    written = {"generated_examples": 224}
    for seed in range(FLAGS.seeds):
        yield _make_row("coupled", "coupled", seed, **written)
    yield _make_row("ordinal", "ordinal", 0, **written)
    changed = {"evaluation_examples": 224, "generated_examples": 0}
    for name, change in CHANGES.items():
        yield _make_row(name, "coupled", 0, **changed, **change)


def _make_row(variant, positions, seed, **flags):
    chosen = DEMONSTRATIONS["addition"][positions]
    flags = {"preset": "addition", **chosen, "seed": seed, **flags}
    columns = {"seed": seed, "variant": variant}
    return make_row("sequence_to_answer", flags, **columns)


def measure(row, workdir, results):
    """Returns what the report has of a finished run."""
    far = row.columns["variant"] == "coupled"
    return {
        **{
            name: results["final"][name]
            for name in MEASURED
            if name in results["final"]
        },
        "by_kind": find_kinds(results),
        **({"far": measure_far(workdir)} if far else {}),
    }


def measure_far(path):
    """Returns what a run achieves on even longer numbers."""
    command = [
        *(sys.executable, "-m", "trainers.evaluate", str(path)),
        f"--test_lengths={','.join(FLAGS.digits)}",
        f"--evaluation_examples={FLAGS.answers}",
        f"--generated_examples={FLAGS.answers}",
    ]
    subprocess.run(command, check=True)
    (path,) = (path / "evaluations").glob("*.json")
    results = read_results(path)
    found = results["final"]
    return {
        "by_kind": {
            kind: {digits: by_length[digits] for digits in FLAGS.digits}
            for kind, by_length in find_kinds(results).items()
        },
        **{
            name: {digits: found[name][digits] for digits in FLAGS.digits}
            for name in MEASURED
            if name.endswith("_by_length")
        },
        "mistakes": [
            mistake
            for mistake in found["mistakes"]
            if str(mistake["length"]) in FLAGS.digits
        ],
    }


def main(argv):
    """Trains what is missing, and reports."""
    del argv
    for row in report("addition", list(list_rows()), measure):
        print(row["variant"], row["seed"], row["exact_match_by_length"])


if __name__ == "__main__":
    app.run(main)
