"""Which method answers problems that are ten times as long as trained ones.

Trains a small model of each method on the same tasks, with the same number of
steps: sums, copies, reversed copies and parity as answers of a decoder, and the
missing duplicate as a class that an encoder finds. An answer is correct if
each token is the most likely one given the correct tokens before it. The
methods that are best at unseen lengths of a task, and two baselines, are then
trained with further seeds.

Two commands run at a time, a core each. The report is written after every run;
runs that the report has are not repeated, and one that was interrupted is
resumed.

    python -m benchmarks.frontier
"""

from absl import app, flags

from benchmarks.comparison import Comparison
from benchmarks.measure import DEFINE_names
from benchmarks.runs import define_flags
from trainers.answers.options import DEMONSTRATIONS

FLAGS = flags.FLAGS
define_flags("frontier", jobs=2)
TRAINED = 10
MODEL = {
    "num_layers": 2,
    "num_heads": 4,
    "model_dim": 128,
    "dropout": 0.0,
    "batch_size": 32,
    "steps": 4000,
    "checkpoint_every": 1000,
    "learning_rate": 1e-3,
    "learning_rate_schedule": "Cosine(end=1e-5)",
    "warmup_steps": 100,
    "evaluation_examples": 100,
    "train_length": f"1-{TRAINED}",
    "test_lengths": "15,20,30,50,100",
}
WRITTEN = {"train_examples": 0, "generated_examples": 0}
TASKS = {
    "addition": ("sequence_to_answer", {"task": "aligned_addition", **WRITTEN}),
    "copy": ("sequence_to_answer", {"task": "aligned_copy", **WRITTEN}),
    "reverse": ("sequence_to_answer", {"task": "aligned_reverse", **WRITTEN}),
    "parity": ("sequence_to_answer", {"task": "aligned_parity", **WRITTEN}),
    "missing duplicate": ("algorithmic", {"task": "missing_duplicate_string"}),
}
NEAR = {"encoding": DEMONSTRATIONS["addition"]["coupled"]["encoding"]}
NONE = {"encoding": "NoPE"}
COUPLED = {"sampler": "CoupledPositions"}
METHODS = {
    **{
        name: {"encoding": name}
        for name in (
            *("NoPE", "SinusoidalEncoding", "T5Bias", "ALiBi", "RoPE", "FIRE"),
            *("LogKERPLE", "HardALiBi", "CoPE", "DAPE", "WarpedRoPE"),
            *("RelativeEncoding", "RandomizedSinusoidalEncoding"),
            *("RandomizedRoPE", "RandomizedRelativeEncoding"),
            *("RandomizedALiBi", "RandomizedFIRE"),
        )
    },
    "near keys": NEAR,
    "stick-breaking": {**NONE, "attention": "StickBreakingAttention"},
    "forgetting": {**NONE, "attention": "ForgettingAttention"},
    "scalable softmax": {**NONE, "score_factor": "log_length"},
    "temperature of heads": {**NONE, "score_factor": "head"},
    # A step applies the block ten times.
    "looped": {**NONE, "loops": "length", "num_layers": 1, "steps": 1600},
    "index hints": {"encoding": "RandomizedFIRE", "task": "hinted_addition"},
    "Abacus": {"encoding": "LearnedEncoding", "sampler": "AbacusPositions"},
    "coupled learned": {"encoding": "LearnedEncoding", **COUPLED},
    "coupled RoPE": {"encoding": "RoPE", **COUPLED},
    "coupled near keys": {**NEAR, **COUPLED},
}
DEFINE_names("only", [], "Methods to train; none: all.", METHODS)
DECODER_ONLY = (
    *("CoPE", "stick-breaking", "forgetting", "looped", "Abacus"),
    *(name for name in METHODS if name.startswith("coupled")),
)


class Frontier(Comparison):
    """Methods on five tasks; some methods take some tasks only."""

    def takes(self, task, method):
        if method == "index hints":
            return task == "addition"
        return task != "missing duplicate" or method not in DECODER_ONLY

    def make_run(self, task, method, seed, changes=(), **columns):
        if (task, method) == ("addition", "Abacus"):
            # Positions within a number count from its least significant digit.
            changes = {"task": "reversed_addition", **dict(changes)}
        return super().make_run(task, method, seed, changes, **columns)


FRONTIER = Frontier(
    "frontier",
    tasks=TASKS,
    methods=METHODS,
    model=MODEL,
    trained=TRAINED,
    baselines=("RoPE", "RandomizedRoPE"),
    seeds=(1, 2),
)


def main(argv):
    """Trains what is missing, and reports."""
    del argv
    FRONTIER.run(methods=FLAGS.only or METHODS, tasks=TASKS)


if __name__ == "__main__":
    app.run(main)
