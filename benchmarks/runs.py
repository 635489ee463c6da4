"""Runs of the benchmarks that train: a sweep trains them, a report has them."""

import dataclasses
import json
import pathlib
import shlex

import numpy as np
from absl import flags

from benchmarks.measure import DEFINE_count, write_report
from benchmarks.result_tables import group
from trainers.devices.interruption import (
    end_at_once,
    handle_signals,
    raise_stopped,
)
from trainers.engine.problem import average_unseen
from trainers.errors import ConfigError
from trainers.options.command import errors_as_statuses
from trainers.options.lengths import parse_lengths
from trainers.options.option import format_flag
from trainers.records.markdown import code, table
from trainers.records.workdir import read_results
from trainers.sweeps.grids.grid import Run, list_runs
from trainers.sweeps.options import SweepConfig, split_flags
from trainers.sweeps.overrides import with_overrides
from trainers.sweeps.training import open_root, train_all

FLAGS = flags.FLAGS
LENGTHS = ("20", "25", "40", "60", "100")
"""Test lengths in a table."""

CAPTION = """Trained on lengths 1 to 20. The score is the mean accuracy over the
tested lengths 25 to 100; `floor` is that of the order-blind
baseline, the best simple rule that ignores the order of the
tokens, `positions only` that of the input-blind baseline, which
sees no tokens. A score that does not beat both shows nothing."""


def define_flags(name, *, jobs):
    """Defines the flags of a benchmark that trains.

    Args:
        name: str, name of the benchmark.
        jobs: int, number of runs at a time if the user does not choose it.
    """
    DEFINE_count(
        "jobs", jobs, "Number of runs at a time; they share the cores."
    )
    flags.DEFINE_string(
        "flags",
        "",
        "Further flags of all runs, such as steps=100,test_lengths=30,60.",
    )
    flags.DEFINE_string("root", f"runs/{name}", "Directory of the runs.")
    flags.DEFINE_string(
        "output", f"benchmarks/results/{name}.json", "File for the report."
    )


@dataclasses.dataclass(frozen=True)
class Row:
    """A run, its flags, and its columns in the report.

    Attributes:
        run: `Run`.
        flags: Dict of the flags of its command.
        columns: Dict, such as the method and the seed.
    """

    run: Run
    flags: dict
    columns: dict

    @property
    def command(self):
        """The command that repeats the run, a str."""
        words = [f"trainers.{self.run.trainer}"]
        if self.run.after is not None:
            source = pathlib.Path(FLAGS.root) / "runs" / self.run.after.name
            words = ["trainers.finetune", str(source)]
        words += [format_flag(*each) for each in self.flags.items()]
        return shlex.join(["python", "-m", *words])


def make_row(trainer, flags, *, after=None, **columns):
    """Makes a `Row` of a run with the values of the flag `--flags`.

    Args:
        trainer: str, name of the trainer.
        flags: Dict of its flags.
        after: `Row` of the run that it continues, with these flags changed; or
            `None`.
        **columns: Columns of the report.
    """
    given = split_flags(FLAGS.flags)
    run = Run(
        trainer=trainer,
        flags={**(after.run.flags if after else {}), **flags},
        row=flags.get("task", trainer),
        column=flags.get("encoding", ""),
        after=after and after.run,
    )
    with errors_as_statuses():
        (run,), arguments = with_overrides([run], given)
    run = run.with_flags(arguments)
    names = {**flags, **given}
    return Row(run, {name: run.flags[name] for name in names}, columns)


def make_comparison(task, encoding, seed, steps):
    """Makes a `Row` of a run of `trainers.algorithmic` on short sequences."""
    columns = {"task": task, "encoding": encoding, "seed": seed}
    lengths = {"train_length": "1-20", "test_lengths": "25-100:5"}
    return make_row(
        "algorithmic", {**columns, "steps": steps, **lengths}, **columns
    )


def train(rows, after_each=lambda row, path, results: None):
    """Trains the runs that are not finished, several at a time.

    It resumes interrupted runs, and starts again those that failed.

    Args:
        rows: Iterable of `Row`.
        after_each: Function of a `Row`, called once its run is finished, the
            `pathlib.Path` of its working directory, and its results, a dict.

    Returns:
        List of pairs: the working directory of each run, and its results.

    Raises:
        SystemExit: If a run cannot start or fails, after all others have run.
    """
    rows = list(rows)
    if not rows:
        return []
    root = open_root(pathlib.Path(FLAGS.root))
    trained = {}

    def read(run):
        path = root.find_workdir(run)
        trained[run.name] = path, read_results(path / "results.json")
        for row in rows:
            if row.run.name == run.name:
                after_each(row, *trained[run.name])

    runs = list_runs(row.run for row in rows)
    handle_signals(raise_stopped)
    with errors_as_statuses():
        for run in runs:
            root.make_config(run)
        for run in runs:
            if root.find_state(run) == "failed":
                root.forget_failure(run)
        config = SweepConfig(jobs=FLAGS.jobs)
        train_all(
            *(config, root, runs),
            retry="run the same command again",
            after_each=read,
        )
    handle_signals(end_at_once)
    return [trained[row.run.name] for row in rows]


def report(module, rows, measure, *, chosen=None):
    """Trains the runs that a report lacks, and adds each to it.

    Args:
        module: str, name of the benchmark.
        rows: List of `Row`, all that the report may have, in their order.
        measure: Function of a `Row`, the working directory of its run and the
            results; returns further columns, a dict.
        chosen: Function of the columns of a row that says whether to train it,
            or `None`: all are trained.

    Returns:
        List of dicts, the rows of the report: the columns, `command`,
        `training_seconds`, `devices` and what `measure` returns.

    Raises:
        SystemExit: If a run fails, or if the report has other runs.
    """
    known = read_known(rows)
    missing = [
        row
        for row in rows
        if identify(row.command) not in known
        and (chosen is None or chosen(row.columns))
    ]
    print(f"{FLAGS.output} has {len(known)} runs, {len(missing)} are missing")
    keys = [identify(row.command) for row in rows]

    def write():
        found = [known[key] for key in keys if key in known]
        write_report(FLAGS.output, f"benchmarks.{module}", {"rows": found})
        return found

    def add(row, workdir, results):
        known[identify(row.command)] = {
            **row.columns,
            "command": row.command,
            "training_seconds": results["train"]["seconds"],
            "devices": results["computed_by"]["devices"],
            **measure(row, workdir, results),
        }
        write()

    train(missing, add)
    return write()


def read_known(rows):
    """Reads the rows of the report; returns a dict from their identities."""
    path = pathlib.Path(FLAGS.output)
    found = json.loads(path.read_text())["rows"] if path.exists() else []
    known = {identify(row["command"]): row for row in found}
    foreign = known.keys() - {identify(row.command) for row in rows}
    if foreign:
        with errors_as_statuses():
            raise ConfigError(
                f"{path} has {len(foreign)} runs with other flags, such as "
                f"{known[next(iter(foreign))]['command']}: choose another "
                "--output."
            )
    return known


def identify(command):
    """Returns the module and the flags of a command, in any order."""
    _, _, module, *words = shlex.split(command)
    pairs = (word.partition("=") for word in words if word.startswith("--"))
    return module, frozenset((name, _read(text)) for name, _, text in pairs)


def _read(text):
    try:
        return float(text)
    except ValueError:
        return text


def summarize(row, workdir, results):
    """Returns the columns of a run of `trainers.algorithmic`."""
    del workdir
    longest = max(
        parse_lengths("--train_length", row.run.flags["train_length"])
    )
    final = results["final"]
    return {
        "score": average_unseen(final["accuracy_by_length"], longest),
        "floor": average_unseen(results["floor_by_length"], longest),
        "position_only": average_unseen(
            results["position_only_by_length"], longest
        ),
        "accuracy_by_length": final["accuracy_by_length"],
    }


def format_table(title, rows):
    """Formats the report in Markdown, a line for each task and encoding."""
    cells = []
    for (task, encoding), runs in group(rows, "task", "encoding").items():
        scores = [run["score"] for run in runs]
        figures = [
            *(max(scores), np.mean(scores), np.std(scores)),
            *(runs[0]["floor"], runs[0]["position_only"]),
            *(
                np.mean([run["accuracy_by_length"][length] for run in runs])
                for length in LENGTHS
            ),
        ]
        shown = (f"{figure:.3f}" for figure in figures)
        cells.append((task, code(encoding), str(len(runs)), *shown))
    head = (
        *("task", "encoding", "runs", "best", "mean", "deviation", "floor"),
        *("positions only", *(f"at {n}" for n in LENGTHS)),
    )
    trained = (
        f"- {row['score']:.3f} ({row['training_seconds']:.0f} s): "
        f"{code(row['command'])}"
        for row in rows
    )
    parts = [
        *(f"# {title}", CAPTION, table(head, cells)),
        "Every run, and the seconds that it trained:",
        "\n".join(trained),
    ]
    return "\n\n".join(parts) + "\n"
