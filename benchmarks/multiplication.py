"""Products of a number with one or two digits, and sums of several numbers.

Trains models with coupled positions on numbers of up to 6 digits, each with
several seeds, and evaluates them on longer ones, by kind of digits.

Flags, resuming and the report are as in `benchmarks.addition`.

    python -m benchmarks.multiplication
"""

from absl import app, flags

from benchmarks.measure import DEFINE_count
from benchmarks.runs import define_flags, make_row, report
from trainers.records.results import find_kinds

FLAGS = flags.FLAGS
define_flags("multiplication", jobs=2)
DEFINE_count("seeds", 3, "Number of seeds.")
STEPS = {
    "digit_multiplication": 4_000,
    "carried_multiplication": 12_000,
    "marked_sum": 9_000,
}
"""Training steps of each task."""
TRAINING = {
    "preset": "addition",
    "encoding": "ClippedBias(max_distance=2, slope=None)",
    "sampler": "CoupledPositions",
    "model_dim": 64,
    "num_layers": 3,
    "train_length": "1-6",
    "test_lengths": "10,20,50,100,200",
    "batch_size": 64,
    "learning_rate": 4e-3,
    "evaluation_examples": 84,
    "generated_examples": 0,
}
"""Flags of all models."""
MEASURED = ("exact_match_by_length", "token_accuracy_by_length")


def list_rows():
    """Yields the `Row` of every run."""
    for seed in range(FLAGS.seeds):
        for task, steps in STEPS.items():
            flags = {**TRAINING, "task": task, "seed": seed, "steps": steps}
            yield make_row("sequence_to_answer", flags, task=task, seed=seed)


def measure(row, workdir, results):
    """Returns what the report has of a finished run."""
    del row, workdir
    return {
        **{name: results["final"][name] for name in MEASURED},
        "by_kind": find_kinds(results),
    }


def main(argv):
    """Trains what is missing, and reports."""
    del argv
    for row in report("multiplication", list(list_rows()), measure):
        print(row["task"], row["seed"], row["exact_match_by_length"])


if __name__ == "__main__":
    app.run(main)
