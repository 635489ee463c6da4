"""Which method generalizes on the tasks of newer benchmarks.

Trains a small decoder of each method on every task at lengths 4 to 20, with the
same number of steps, and tests it at 2, 4, 10 and 64 times the longest one.
Strings of distinct symbols are tested at 2, 4 and 7 times, copies of bits and
sums at 2, 4 and 10 times, and words in A5 and S5 at 2 and 4 times. Tasks are
associative recall (MQAR and MQMTAR), memory and state (flip-flop, words in
groups), the suite of C-RASP, and the synthetic tasks of RULER. Scores are as
published: exact match of the whole answer, or accuracy. The methods that are
best at unseen lengths of a task, and two baselines, are then trained with
further seeds.

Two models are trained at a time, a core each. The report is written after every
run; runs that it has are not repeated, and an interrupted one is resumed.

    python -m benchmarks.published_tasks
    python -m benchmarks.published_tasks --tasks=mqar --only=RoPE,NAPE
"""

from absl import app, flags

from benchmarks.comparison import Comparison
from benchmarks.measure import DEFINE_names
from benchmarks.result_tables import PUBLISHED_TASKS
from benchmarks.runs import define_flags

FLAGS = flags.FLAGS
define_flags("published_tasks", jobs=2)
TRAINED = 20
MODEL = {
    "model": "decoder",
    "num_layers": 2,
    "num_heads": 4,
    "model_dim": 64,
    "dropout": 0.0,
    "batch_size": 32,
    "steps": 4000,
    "checkpoint_every": 1000,
    "learning_rate": 3e-3,
    "learning_rate_schedule": "Cosine(end=1e-5)",
    "warmup_steps": 100,
    "evaluation_examples": 64,
    "train_length": f"4-{TRAINED}",
    "test_lengths": "40,80,200,1280",
}
EXACT_MATCH = (
    *("mqmtar", "words_s3", "words_a5", "words_s5"),
    *("unique_copy", "repeat_copy", "unique_sort", "binary_addition"),
)
"""Tasks whose score is the share of wholly correct answers."""
LONGER = "words_s3 trained longer"
"""The name of words in S3 with 10 times as many examples of training."""

CHANGED = {
    # There are 150 symbols.
    "unique_copy": {"test_lengths": "40,80,140"},
    "unique_sort": {"test_lengths": "40,80,140"},
    # With their answers, 1,280 tokens take longer to evaluate than training.
    "repeat_copy": {"test_lengths": "40,80,200"},
    "binary_addition": {"test_lengths": "40,80,200"},
    "words_a5": {"test_lengths": "40,80"},
    "words_s5": {"test_lengths": "40,80"},
    LONGER: {
        "task": "words_s3",
        "batch_size": 128,
        "steps": 10_000,
        "learning_rate": 1e-3,
        "test_lengths": "40,80",
    },
}
"""Further flags of some tasks."""

TASKS = {
    task: ("algorithmic", {"task": task, **CHANGED.get(task, {})})
    for tasks in PUBLISHED_TASKS.values()
    for task in tasks
}
METHODS = {
    **{
        name: {"encoding": name}
        for name in (
            *("NoPE", "SinusoidalEncoding", "T5Bias", "ALiBi", "RoPE", "FIRE"),
            *("LogKERPLE", "DAPE", "CoPE", "BAM", "NAPE", "PoPE"),
            *("RandomizedRoPE", "SelectiveRoPE", "RandomizedRelativeEncoding"),
        )
    },
    # Frequencies for 64 times the trained length.
    "RandomizedYaRN": {"encoding": "RandomizedYaRN(scaling_factor=64)"},
    "continuous RoPE": {"encoding": "RoPE", "sampler": "ContinuousPositions"},
    "stick-breaking": {
        "encoding": "NoPE",
        "attention": "StickBreakingAttention",
    },
    "forgetting": {"encoding": "NoPE", "attention": "ForgettingAttention"},
    "PaTH": {"encoding": "NoPE", "attention": "PaTHAttention"},
    "scalable softmax": {"encoding": "NoPE", "score_factor": "log_length"},
    "ASEntmax": {
        "encoding": "NAPE",
        "score_factor": "adaptive",
        "attention_normalizer": "entmax",
    },
}
DEFINE_names("only", [], "Methods to train; none: all.", METHODS)
DEFINE_names("tasks", [], "Tasks to train; none: all.", TASKS)
OF_WORDS = (
    *("NoPE", "RoPE", "CoPE", "SelectiveRoPE", "forgetting"),
    *("stick-breaking", "PaTH", "ASEntmax"),
)
"""Methods that are trained on words in A5 and S5, and longer on words in S3:
two baselines, those whose scores depend on the tokens between a query and a
key, and one with sparse weights."""


class PublishedTasks(Comparison):
    """Methods on 17 tasks; words are for some methods only, except in S3."""

    def takes(self, task, method):
        few = task in ("words_a5", "words_s5", LONGER)
        return not few or method in OF_WORDS


COMPARISON = PublishedTasks(
    "published_tasks",
    tasks=TASKS,
    methods=METHODS,
    model=MODEL,
    trained=TRAINED,
    baselines=("RoPE", "NoPE"),
    seeds=(1, 2),
    metrics=dict.fromkeys(EXACT_MATCH, "exact_match"),
)


def main(argv):
    """Trains what is missing, and reports."""
    del argv
    COMPARISON.run(methods=FLAGS.only or METHODS, tasks=FLAGS.tasks or TASKS)


if __name__ == "__main__":
    app.run(main)
