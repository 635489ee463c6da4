"""Sums of three to five numbers, and products with one or two digits.

Trains models with coupled positions on numbers of up to 10 digits, each with
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
MODELS = {
    "marked_sum": {
        "encoding": "ClippedBias(max_distance=3, slope=None)",
        "evaluation_examples": 42,
        "generated_examples": 42,
    },
    "digit_multiplication": {
        "encoding": "ClippedBias(max_distance=3, slope=None)",
    },
    "carried_multiplication": {
        "encoding": "ClippedBias(max_distance=3, slope=None)",
    },
}
"""Flags of the model of each task."""
MEASURED = (
    "generated_exact_match_by_length",
    "generated_exact_match_by_group",
    "exact_match_by_length",
    "answers_by_length",
    "unfinished_by_length",
    "mistakes",
)


def list_rows():
    """Yields the `Row` of every run."""
    for seed in range(FLAGS.seeds):
        for task, given in MODELS.items():
            flags = {"preset": "addition", "task": task, **given}
            flags |= {"sampler": "CoupledPositions", "seed": seed}
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
        print(row["task"], row["seed"], row["generated_exact_match_by_length"])


if __name__ == "__main__":
    app.run(main)
