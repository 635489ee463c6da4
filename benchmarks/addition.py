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

import functools
import json
import pathlib
import re

from absl import app, flags

from benchmarks.measure import DEFINE_count, write_report
from benchmarks.runs import (
    describe,
    run_at_once,
    run_command,
    train_alone,
)
from trainers.answers.options import DEMONSTRATIONS
from trainers.records.results import find_kinds
from trainers.records.workdir import read_results

FLAGS = flags.FLAGS
DEFINE_count("seeds", 3, "Number of seeds.")
DEFINE_count("jobs", 2, "Number of commands at a time.")
flags.DEFINE_list("flags", [], "Further flags of the trainer, without --.")
flags.DEFINE_list("digits", ["1000", "2000"], "Even longer numbers.")
DEFINE_count("answers", 14, "Answers at each of these lengths.")
flags.DEFINE_string(
    "root", "runs/addition", "Directory for the working directories."
)
flags.DEFINE_string(
    "output", "benchmarks/results/addition.json", "File for the report."
)
CHANGES = {
    "no mark before numbers": ("--task=aligned_addition",),
    "trained on uniform digits only": ("--structured=0",),
    "neither": ("--task=aligned_addition", "--structured=0"),
    "far keys damped, not hidden": ("--encoding=ClippedBias(max_distance=3)",),
    "`RoPE` in place of `ClippedBias`": ("--encoding=RoPE",),
    "ordinal positions, no key hidden": (
        "--encoding=ClippedBias(slope=0)",
        "--sampler=OrdinalPositions",
    ),
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


def train(variant, seed, *flags):
    """Trains a model of the preset; returns its path and its row."""
    positions = "ordinal" if variant == "ordinal" else "coupled"
    chosen = DEMONSTRATIONS["addition"][positions]
    given = [
        "--preset=addition",
        *(f"--{flag}={value}" for flag, value in chosen.items()),
        *(f"--seed={seed}", *flags),
        *(f"--{flag}" for flag in FLAGS.flags),
    ]
    # The last value of a flag counts.
    named = {flag.partition("=")[0]: flag for flag in given}
    arguments = ["trainers.sequence_to_answer", *named.values()]
    path = pathlib.Path(FLAGS.root) / re.sub(r"\W+", "_", f"{variant}-{seed}")
    train_alone(path, arguments, jobs=FLAGS.jobs)
    results = read_results(path / "results.json")
    row = {
        "seed": seed,
        "variant": variant,
        **describe(path, arguments, results),
        **{
            name: results["final"][name]
            for name in MEASURED
            if name in results["final"]
        },
        "by_kind": find_kinds(results),
    }
    return path, row


def measure(variant, seed):
    """Trains one of the models to compare; returns its row."""
    path, row = train(variant, seed, "--generated_examples=224")
    if variant == "coupled":
        row["far"] = measure_far(path)
    return row


def measure_far(path):
    """Returns what a run achieves on even longer numbers."""
    arguments = [
        *("trainers.evaluate", str(path)),
        f"--test_lengths={','.join(FLAGS.digits)}",
        f"--evaluation_examples={FLAGS.answers}",
        f"--generated_examples={FLAGS.answers}",
    ]
    run_command(arguments)
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


def measure_change(name, seed):
    """Trains a model with coupled positions and one change; returns its row."""
    given = "--evaluation_examples=224", "--generated_examples=0"
    _, row = train(name, seed, *given, *CHANGES[name])
    return row


def main(argv):
    """Trains what is missing, and reports."""
    del argv
    path = pathlib.Path(FLAGS.output)
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    done = {identify(row) for row in rows}
    seeds = range(FLAGS.seeds)
    runs = [
        *(("coupled", seed, measure) for seed in seeds),
        ("ordinal", 0, measure),
        *((name, 0, measure_change) for name in CHANGES),
    ]
    order = [run[:2] for run in runs]
    calls = [
        functools.partial(function, variant, seed)
        for variant, seed, function in runs
        if (variant, seed) not in done
    ]
    for _, row in run_at_once(calls, jobs=FLAGS.jobs):
        rows.append(row)
        rows.sort(key=lambda row: order.index(identify(row)))
        right = row["exact_match_by_length"]
        print(json.dumps({row["run"]: right}), flush=True)
        write_report(FLAGS.output, "benchmarks.addition", {"rows": rows})


def identify(row):
    """Returns the variant and the seed of a row."""
    return row["variant"], row["seed"]


if __name__ == "__main__":
    app.run(main)
