"""Sums of numbers that are up to 200 times as long as the trained ones.

Runs the demonstration of the preset `addition` with several seeds, ordinal
against coupled positions, and tests the models with coupled positions on even
longer numbers. Further runs with coupled positions change one choice each: they
show what the exactness depends on. The report is written after every seed;
seeds that it has are not repeated, and an interrupted run is resumed.

    python -m benchmarks.addition
"""

import json
import pathlib

from absl import app, flags

from benchmarks.measure import write_report
from benchmarks.runs import describe, run_command
from trainers.options.answers import DEMONSTRATIONS
from trainers.records.workdir import read_results

FLAGS = flags.FLAGS
flags.DEFINE_integer("seeds", 3, "Number of seeds.")
flags.DEFINE_list("flags", [], "Further flags of the trainer, without --.")
flags.DEFINE_list("digits", ["1000", "2000"], "Even longer numbers.")
flags.DEFINE_integer("answers", 8, "Answers at each of these lengths.")
flags.DEFINE_string(
    "root", "runs/addition", "Directory for the working directories."
)
flags.DEFINE_string(
    "output", "benchmarks/results/addition.json", "File for the report."
)
CHANGES = {
    "far keys damped, not hidden": ("--encoding=ClippedBias(max_distance=3)",),
    "learning rate to a tenth, not a hundredth": (
        "--learning_rate_schedule=Cosine(end=1e-4)",
    ),
    "2,000 steps": ("--steps=2000",),
}
"""Flags that change one choice of the preset."""
MEASURED = (
    "generated_exact_match_by_length",
    "exact_match_by_length",
    "token_accuracy_by_length",
    "answers_by_length",
)


def measure(seed):
    """Runs the demonstration with a seed, and returns a row for each model."""
    path = pathlib.Path(FLAGS.root) / f"seed-{seed}"
    arguments = [
        *("trainers.sequence_to_answer", "--preset=addition", f"--seed={seed}"),
        *(f"--{flag}" for flag in FLAGS.flags),
    ]
    run_command([*arguments, f"--workdir={path}"])
    return [
        {
            "seed": seed,
            "variant": variant,
            **describe(path / variant, arguments, results),
            **{name: results["final"][name] for name in MEASURED},
        }
        for variant in DEMONSTRATIONS["addition"]
        for results in [read_results(path / variant / "results.json")]
    ]


def measure_far(row):
    """Adds results on even longer numbers to a row."""
    run = pathlib.Path(FLAGS.root) / f"seed-{row['seed']}" / row["variant"]
    arguments = [
        *("trainers.evaluate", str(run)),
        f"--test_lengths={','.join(FLAGS.digits)}",
        f"--evaluation_examples={FLAGS.answers}",
        f"--generated_examples={FLAGS.answers}",
    ]
    run_command(arguments)
    (path,) = (run / "evaluations").glob("*.json")
    found = read_results(path)["final"]
    row["far"] = {
        name: {n: found[name][n] for n in FLAGS.digits} for name in MEASURED
    }


def measure_change(name, seed):
    """Trains a model with coupled positions and one change; returns its row."""
    coupled = DEMONSTRATIONS["addition"]["coupled"]
    given = [
        "--preset=addition",
        *(f"--{flag}={value}" for flag, value in coupled.items()),
        *(f"--seed={seed}", "--evaluation_examples=256"),
        "--generated_examples=0",
        *CHANGES[name],
        *(f"--{flag}" for flag in FLAGS.flags),
    ]
    # The last value of a flag counts.
    named = {flag.partition("=")[0]: flag for flag in given}
    arguments = ["trainers.sequence_to_answer", *named.values()]
    path = pathlib.Path(FLAGS.root) / f"{name}-{seed}".replace(" ", "_")
    run_command([*arguments, f"--workdir={path}"])
    results = read_results(path / "results.json")
    return {
        "seed": seed,
        "variant": name,
        **describe(path, arguments, results),
        "exact_match_by_length": results["final"]["exact_match_by_length"],
    }


def main(argv):
    """Trains what is missing, and reports."""
    del argv
    path = pathlib.Path(FLAGS.output)
    rows = json.loads(path.read_text())["rows"] if path.exists() else []

    def add(row):
        rows.append(row)
        right = row["exact_match_by_length"]
        print(json.dumps({f"{row['variant']}, seed {row['seed']}": right}))

    for seed in range(FLAGS.seeds):
        done = {row["variant"] for row in rows if row["seed"] == seed}
        if "coupled" not in done:
            for row in measure(seed):
                if row["variant"] == "coupled":
                    measure_far(row)
                add(row)
            write_report(FLAGS.output, "benchmarks.addition", {"rows": rows})
        for name in (name for name in CHANGES if name not in done):
            add(measure_change(name, seed))
            write_report(FLAGS.output, "benchmarks.addition", {"rows": rows})


if __name__ == "__main__":
    app.run(main)
