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

import functools
import json
import pathlib
import statistics

from absl import app, flags
from matplotlib.figure import Figure

from benchmarks.measure import DEFINE_count, write_report
from benchmarks.runs import (
    describe,
    run_at_once,
    train_alone,
    write_command,
)
from trainers.answers.options import DEMONSTRATIONS
from trainers.engine.problem import average_unseen
from trainers.records.workdir import read_results

FLAGS = flags.FLAGS
flags.DEFINE_list("flags", [], "Further flags of the trainers, without --.")
flags.DEFINE_list("only", [], "Methods to train; none: all.")
DEFINE_count("jobs", 2, "Number of commands at a time.")
flags.DEFINE_string(
    "root", "runs/frontier", "Directory for the working directories."
)
flags.DEFINE_string(
    "output", "benchmarks/results/frontier.json", "File for the report."
)
TRAINED = 10
MODEL = (
    *("--num_layers=2", "--num_heads=4", "--model_dim=128", "--dropout=0"),
    *("--batch_size=32", "--steps=4000", "--checkpoint_every=1000"),
    *("--learning_rate=1e-3", "--learning_rate_schedule=Cosine(end=1e-5)"),
    *("--warmup_steps=100", "--evaluation_examples=100"),
    *(f"--train_length=1-{TRAINED}", "--test_lengths=15,20,30,50,100"),
)
WRITTEN = ("--train_examples=0", "--generated_examples=0")
TASKS = {
    "addition": ("sequence_to_answer", "--task=aligned_addition", *WRITTEN),
    "copy": ("sequence_to_answer", "--task=aligned_copy", *WRITTEN),
    "reverse": ("sequence_to_answer", "--task=aligned_reverse", *WRITTEN),
    "parity": ("sequence_to_answer", "--task=aligned_parity", *WRITTEN),
    "missing duplicate": ("algorithmic", "--task=missing_duplicate_string"),
}
NEAR = f"--encoding={DEMONSTRATIONS['addition']['coupled']['encoding']}"
METHODS = {
    **{
        name: (f"--encoding={name}",)
        for name in (
            *("NoPE", "SinusoidalEncoding", "T5Bias", "ALiBi", "RoPE", "FIRE"),
            *("LogKERPLE", "HardALiBi", "CoPE", "DAPE", "WarpedRoPE"),
            *("RelativeEncoding", "RandomizedSinusoidalEncoding"),
            *("RandomizedRoPE", "RandomizedRelativeEncoding"),
            *("RandomizedALiBi", "RandomizedFIRE"),
        )
    },
    "near keys": (NEAR,),
    "stick-breaking": (
        "--encoding=NoPE",
        "--attention=StickBreakingAttention",
    ),
    "forgetting": ("--encoding=NoPE", "--attention=ForgettingAttention"),
    "scalable softmax": ("--encoding=NoPE", "--score_factor=log_length"),
    "temperature of heads": ("--encoding=NoPE", "--score_factor=head"),
    "looped": (
        *("--encoding=NoPE", "--loops=length", "--num_layers=1"),
        # A step applies the block ten times.
        "--steps=1600",
    ),
    "index hints": ("--encoding=RandomizedFIRE", "--task=hinted_addition"),
    "Abacus": (
        "--encoding=LearnedEncoding",
        "--sampler=AbacusPositions",
    ),
    "coupled learned": (
        "--encoding=LearnedEncoding",
        "--sampler=CoupledPositions",
    ),
    "coupled RoPE": ("--encoding=RoPE", "--sampler=CoupledPositions"),
    "coupled near keys": (NEAR, "--sampler=CoupledPositions"),
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
    return [
        name
        for name in METHODS
        if name not in left_out and name in (FLAGS.only or METHODS)
    ]


def list_arguments(task, method, seed, *changes):
    """Returns the arguments of the command of a run.

    Args:
        task: str, one of `TASKS`.
        method: str, one of `METHODS`.
        seed: int.
        *changes: Further flags of the trainer.
    """
    module, *of_task = TASKS[task]
    if (task, method) == ("addition", "Abacus"):
        # Positions within a number count from its least significant digit.
        of_task[0] = "--task=reversed_addition"
    given = (*MODEL, *of_task, *METHODS[method], f"--seed={seed}", *changes)
    more = (f"--{flag}" for flag in FLAGS.flags)
    # The last value of a flag counts, and names it once.
    named = {flag.partition("=")[0]: flag for flag in (*given, *more)}
    return [f"trainers.{module}", *named.values()]


def choose_runs(rows):
    """Lists the task, the method and the seed of every run.

    Args:
        rows: Rows of finished runs; the further seeds are those of methods
            that are best among them, once a task has all of its first runs.
    """
    for task in TASKS:
        for method in list_methods(task):
            yield task, method, 0
    for task in TASKS:
        scores = {
            row["method"]: row["score"]
            for row in rows
            if row["task"] == task and row["seed"] == 0
        }
        methods = list_methods(task)
        if scores.keys() < set(methods):
            continue
        best = sorted(methods, key=scores.get, reverse=True)[:BEST]
        for method in dict.fromkeys((*best, *BASELINES)):
            if method in methods:
                yield from ((task, method, seed) for seed in range(1, SEEDS))


def find_place(row):
    """Returns the place of a row in the report, a tuple to sort by."""
    place = list(TASKS).index(row["task"]), list(METHODS).index(row["method"])
    return *place, row["seed"]


def find_workdir(task, method, seed):
    """Returns the working directory of a run."""
    name = f"{task}-{method}-{seed}".replace(",", "").replace(" ", "_")
    return pathlib.Path(FLAGS.root) / name


def measure(task, method, seed):
    """Trains a model, unless it is finished, and returns its row."""
    arguments = list_arguments(task, method, seed)
    workdir = find_workdir(task, method, seed)
    train_alone(workdir, arguments, jobs=FLAGS.jobs)
    results = read_results(workdir / "results.json")
    metric = results["score_metric"]
    shares = results["final"][f"{metric}_by_length"]
    return {
        "task": task,
        "method": method,
        "seed": seed,
        **describe(workdir, arguments, results),
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
    """Trains what is missing, two models at a time, and reports."""
    del argv
    path = pathlib.Path(FLAGS.output)
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    # The results of the first runs choose the further ones.
    run_missing(rows, path)
    run_missing(rows, path)


def run_missing(rows, path):
    """Trains the models that no row has, and adds their rows to the report.

    Args:
        rows: List of rows, which is extended.
        path: `pathlib.Path` of the report.
    """
    done = {row["command"] for row in rows}
    missing = [
        run
        for run in choose_runs(rows)
        if write_command(list_arguments(*run)) not in done
    ]
    calls = [functools.partial(measure, *run) for run in missing]
    for number, (_, row) in enumerate(run_at_once(calls, jobs=FLAGS.jobs), 1):
        rows.append(row)
        rows.sort(key=find_place)
        print(
            f"{number}/{len(missing)} {row['run']}: score {row['score']:.3f}, "
            f"{row['training_seconds']:.0f} s",
            flush=True,
        )
        write_report(FLAGS.output, "benchmarks.frontier", {"rows": rows})
        plot(rows, path.with_suffix(".png"))


if __name__ == "__main__":
    app.run(main)
