"""Compares evaluation with a few padded lengths and one program per length.

Measures the first sweep over all lengths (cold), which traces and compiles, and
later ones (warm). Padding saves compilations, but computes more tokens.

    python -m benchmarks.length_sweep
"""

import statistics
import time

import keras
from absl import app, flags

from benchmarks.measure import DEFINE_count, write_report
from datasets.buckets import length_buckets
from keras_lengen.models import presets
from trainers.algorithmic import EXPERIMENT
from trainers.devices.tensorflow_strategy import make_strategy
from trainers.engine.evaluation import LengthEvaluation
from trainers.engine.evaluation_sizes import PROGRAMS
from trainers.engine.tensorflow_step import TensorFlowEvaluationStep
from trainers.options.lengths import parse_lengths

FLAGS = flags.FLAGS
flags.DEFINE_string("task", "even_pairs", "Task to evaluate.")
flags.DEFINE_string("lengths", "41-500:20", "Lengths to evaluate.")
DEFINE_count("examples", 100, "Number of examples of each length.")
DEFINE_count("rounds", 3, "Number of warm sweeps of each kind, in turns.")
flags.DEFINE_string(
    "output", "benchmarks/results/length_sweep.json", "File for the report."
)

SIZES = ("num_layers", "num_heads", "model_dim", "dropout")

BUCKETED, EXACT = "padded to a few lengths", "one program per length"


class Sweep:
    """One way to evaluate all lengths.

    Args:
        programs: Maximum number of padded lengths.
        compiled: Whether XLA compiles the forward pass.
    """

    def __init__(self, programs, compiled):
        config = EXPERIMENT.config(
            task=FLAGS.task,
            encoding="RandomizedRoPE",
            max_position=2048,
            train_length="1",
            test_lengths=FLAGS.lengths,
            evaluation_examples=FLAGS.examples,
            **{name: presets["ruoss"][name] for name in SIZES},
        )
        strategy = make_strategy("one_device")
        model, _, self.problem = EXPERIMENT.make_parts(config, strategy)
        lengths = parse_lengths("--lengths", FLAGS.lengths)
        self.problem.lengths = lengths
        self.evaluation = LengthEvaluation(
            TensorFlowEvaluationStep(
                model=model,
                problem=self.problem,
                strategy=strategy,
                seed=0,
                compiled=compiled,
            ),
            length_buckets([self.problem.tokens(n) for n in lengths], programs),
        )

    def measure_seconds(self):
        """Measures the wall time of a sweep over all lengths."""
        start = time.perf_counter()
        self.evaluation()
        return time.perf_counter() - start

    def make_row(self, cold, warm):
        """Makes a row of the report: programs, tokens and times."""
        tokens = [self.problem.tokens(n) for n in self.problem.lengths]
        padded = [
            min(bucket for bucket in self.evaluation.buckets if bucket >= count)
            for count in tokens
        ]
        return {
            "programs": self.evaluation.step.traces,
            "padded_lengths": len(self.evaluation.buckets),
            "pairs_ratio": sum(n**2 for n in padded)
            / sum(n**2 for n in tokens),
            "tokens_ratio": sum(padded) / sum(tokens),
            "cold_seconds": cold,
            "warm_seconds": statistics.median(warm),
        }


def measure(compiled):
    """Measures both ways, with or without XLA; returns rows."""
    keras.utils.set_random_seed(0)
    number = len(parse_lengths("--lengths", FLAGS.lengths))
    sweeps = {
        BUCKETED: Sweep(PROGRAMS, compiled),
        EXACT: Sweep(number, compiled),
    }
    cold = {name: sweep.measure_seconds() for name, sweep in sweeps.items()}
    warm = {name: [] for name in sweeps}
    for _ in range(FLAGS.rounds):
        for name, sweep in sweeps.items():
            warm[name].append(sweep.measure_seconds())
    rows = {
        name: sweep.make_row(cold[name], warm[name])
        for name, sweep in sweeps.items()
    }
    for name, row in rows.items():
        row["cold_ratio"] = row["cold_seconds"] / rows[EXACT]["cold_seconds"]
        row["warm_ratio"] = statistics.median(
            chosen / exact
            for chosen, exact in zip(warm[name], warm[EXACT], strict=True)
        )
        print(
            f"{'XLA' if compiled else 'TensorFlow kernels':20s}{name:26s}"
            f"{row['programs']:3d} programs, cold {row['cold_seconds']:6.1f} s "
            f"({row['cold_ratio']:.2f}), warm {row['warm_seconds']:6.1f} s "
            f"({row['warm_ratio']:.2f}), pairs of tokens "
            f"{row['pairs_ratio']:.3f}",
            flush=True,
        )
    return [
        {"xla": compiled, "kind": name, **row} for name, row in rows.items()
    ]


def main(argv):
    """Measures both ways, with and without XLA, and writes the report."""
    del argv
    rows = measure(compiled=False) + measure(compiled=True)
    content = {
        "task": FLAGS.task,
        "lengths": FLAGS.lengths,
        "examples": FLAGS.examples,
        "rows": rows,
    }
    write_report(FLAGS.output, "benchmarks.length_sweep", content)


if __name__ == "__main__":
    app.run(main)
