"""Which method answers problems that are ten times as long as trained ones.

Trains a small model of each method on the same tasks, with the same number of
steps: sums, copies, reversed copies and parity as answers of a decoder, and the
missing duplicate as a class that an encoder finds. An answer is right if each
of its words is the most likely one after the right words before it. The methods
that are best at unseen lengths of a task, and two baselines, are then trained
with further seeds.

Two commands run at a time, a core each. The report and its plot are written
after every run; runs that the report has are not repeated, and one that was
interrupted is resumed.

    python -m benchmarks.frontier
"""

import pathlib
import statistics

from absl import app, flags
from matplotlib.figure import Figure

from benchmarks.runs import define_flags, make_row, report
from trainers.answers.options import DEMONSTRATIONS
from trainers.engine.problem import average_unseen

FLAGS = flags.FLAGS
define_flags("frontier", jobs=2)
flags.DEFINE_list("only", [], "Methods to train; none: all.")
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
flags.register_validator(
    "only",
    lambda names: set(names) <= METHODS.keys(),
    message=f"names of methods are {', '.join(METHODS)}.",
)
DECODER_ONLY = (
    *("CoPE", "stick-breaking", "forgetting", "looped", "Abacus"),
    *(name for name in METHODS if name.startswith("coupled")),
)
TICKS = (1, 2, 5, 10, 20, 50, 100)
BASELINES = ("RoPE", "RandomizedRoPE")
BEST = 3
SEEDS = 3


def list_methods(task):
    """Returns the methods that a task takes."""
    left_out = {"index hints"} if task != "addition" else set()
    if task == "missing duplicate":
        left_out.update(DECODER_ONLY)
    return [name for name in METHODS if name not in left_out]


def make_run(task, method, seed, changes=(), **columns):
    """Makes the `Row` of a run.

    Args:
        task: str, one of `TASKS`.
        method: str, one of `METHODS`.
        seed: int.
        changes: Dict of further flags of the trainer.
        **columns: Further columns of the report.
    """
    trainer, of_task = TASKS[task]
    if (task, method) == ("addition", "Abacus"):
        # Positions within a number count from its least significant digit.
        of_task = {**of_task, "task": "reversed_addition"}
    given = {**MODEL, **of_task, **METHODS[method], "seed": seed}
    columns = {"task": task, "method": method, **columns, "seed": seed}
    return make_row(trainer, {**given, **dict(changes)}, **columns)


def choose_more(rows):
    """Lists the tasks and methods that are trained with further seeds.

    Args:
        rows: Rows of the report. Once a task has all of its first runs, the
            methods are the best ones of these, and the baselines.
    """
    for task in TASKS:
        scores = {
            row["method"]: row["score"]
            for row in rows
            if row["task"] == task and row["seed"] == 0
        }
        methods = list_methods(task)
        if scores.keys() >= set(methods):
            best = sorted(methods, key=scores.get, reverse=True)[:BEST]
            yield from ((task, method) for method in (*best, *BASELINES))


def measure(row, workdir, results):
    """Returns what the report has of a finished run."""
    del row, workdir
    metric = results["score_metric"]
    shares = results["final"][f"{metric}_by_length"]
    return {
        "score": average_unseen(shares, TRAINED),
        "floor": average_unseen(results["floor_by_length"], TRAINED),
        f"{metric}_by_length": shares,
    }


def plot(rows, path):
    """Draws the share of right answers of every method against the length."""
    figure = Figure(figsize=(4 * len(TASKS), 4.5), layout="constrained")
    panels = figure.subplots(1, len(TASKS), sharey=True)
    for axes, task in zip(panels, TASKS, strict=True):
        of_task = [row for row in rows if row["task"] == task]
        medians = sorted(
            (
                (statistics.median(row["score"] for row in some), some)
                for some in group(of_task).values()
            ),
            key=lambda pair: pair[0],
            reverse=True,
        )
        for number, (_, some) in enumerate(medians):
            shares = [find_shares(row) for row in some]
            lengths = list(shares[0])
            middle = [statistics.median(s[n] for s in shares) for n in lengths]
            named = number < BEST or some[0]["method"] in BASELINES
            axes.plot(
                lengths,
                middle,
                **(
                    {"label": some[0]["method"], "linewidth": 2}
                    if named
                    else {"color": "0.8", "linewidth": 1, "zorder": 0}
                ),
            )
        axes.axvspan(1, TRAINED, color="0.95", zorder=-1)
        axes.set(title=task, xlabel="length", xscale="log", ylim=(0, 1.02))
        axes.set_xticks(TICKS, TICKS, minor=False)
        axes.set_xticks([], minor=True)
        if of_task:
            axes.legend(fontsize=8)
    panels[0].set_ylabel("share of right answers")
    figure.savefig(path, dpi=100)


def group(rows):
    """Returns the rows of each method of a task, a dict of lists."""
    found = {}
    for row in rows:
        found.setdefault(row["method"], []).append(row)
    return found


def find_shares(row):
    """Returns the share of right answers at each length, a dict."""
    (name,) = (name for name in row if name.endswith("_by_length"))
    return {int(length): share for length, share in row[name].items()}


def main(argv):
    """Trains what is missing, and reports."""
    del argv
    runs = [
        make_run(task, method, seed)
        for task in TASKS
        for method in list_methods(task)
        for seed in range(SEEDS)
    ]
    wanted = FLAGS.only or METHODS
    rows = report(
        "frontier",
        runs,
        measure,
        chosen=lambda row: row["seed"] == 0 and row["method"] in wanted,
    )
    # The results of the first runs choose the further ones.
    more = set(choose_more(rows))
    rows = report(
        "frontier",
        runs,
        measure,
        chosen=lambda row: (
            (row["task"], row["method"]) in more and row["method"] in wanted
        ),
    )
    plot(rows, pathlib.Path(FLAGS.output).with_suffix(".png"))


if __name__ == "__main__":
    app.run(main)
