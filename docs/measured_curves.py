"""The curves of all committed reports, for the explorer of the site."""

import dataclasses
import functools
import shlex
import statistics

from benchmarks.result_tables import (
    average_kinds,
    group,
    read_demonstration,
    read_rows,
)
from keras_lengen.evaluation.plot import find_spans
from trainers.options.fields import resolve
from trainers.records.opened_run import make_problem, registered
from trainers.reports.chart import Curve, Panel
from trainers.reports.curves import combine, estimate, find_metric
from trainers.sweeps.grids import Run
from trainers.sweeps.overrides import with_overrides

COMPARED = {
    "frontier": "28 methods",
    "published_tasks": "newer tasks",
    "evidence": "algorithmic tasks",
    "answers": "answers",
    "randomized_forms": "sampled distances",
}
"""Reports on several tasks, with a word that tells their tasks apart."""

MEASURES = (
    *("generated_exact_match", "exact_match", "accuracy", "nats_per_byte"),
)
"""The first one that all runs on a task have is shown."""

NEAR = "coupled near keys"
"""Method of the reports that have one method only, as in `frontier`."""

ABLATION = "ablation: "
"""Beginning of the names of what differs from `NEAR` in one respect."""


def make_panels():
    """Returns a `Panel` for each task of each report, a list."""
    panels = [_make_demonstration()]
    for name, label in COMPARED.items():
        for task, rows in group(read_rows(name), "task").items():
            panels.append(_make_panel(f"{task} ({label})", rows))
    for task, rows in group(read_rows("kinds"), "task").items():
        found = [_make_structured(row) for row in rows]
        panels.append(_make_panel(f"{task}, structured problems", found))
    sums = [{**row, "method": _name_sum(row)} for row in read_rows("addition")]
    panels.append(_make_panel("addition (up to 500 digits)", sums))
    for task, rows in group(read_rows("multiplication"), "task").items():
        found = [{"method": NEAR, **row} for row in rows]
        panels.append(_make_panel(f"{task} (up to 200 digits)", found))
    steps = [
        {"method": NEAR, **row} for row in read_rows("long_multiplication")
    ]
    panels.append(_make_panel("multiply_add (steps of products)", steps))
    text = group(read_rows("language"), "run")
    for task, is_shown in (
        ("text", lambda name: "-from-" not in name),
        ("text, trained with RoPE and fine-tuned", lambda name: "-" in name),
    ):
        rows = [
            {**row, "method": name.partition("-")[0]}
            for name, (row,) in text.items()
            if is_shown(name)
        ]
        first = {**rows[0], "command": text["RoPE"][0]["command"]}
        panels.append(_make_panel(task, [first, *rows[1:]]))
    return [*panels, _make_images()]


def _make_demonstration():
    found = read_demonstration()
    first = next(iter(found.values()))
    rows = [
        {
            "method": method,
            "training_seconds": results["train"]["seconds"],
            "accuracy_by_length": results["final"]["accuracy_by_length"],
            **{
                name: by for name, by in results.items() if "_by_length" in name
            },
        }
        for method, results in found.items()
    ]
    problem = make_problem(first)
    return _make_panel(f"{problem.title} (demonstration)", rows, problem)


def _make_structured(row):
    """Returns a run with its mean over the kinds of structured problems."""
    _, structured = average_kinds(row["by_kind"])
    return {
        **row,
        "method": f"{row['method']}, trained on {row['training']} problems",
        "exact_match_by_length": structured,
        # All kinds have as many examples, and one is not structured.
        "counted": 1 - 1 / len(row["by_kind"]),
    }


def _name_sum(row):
    name = row["variant"].replace("`", "")
    is_change = name not in ("coupled", "ordinal")
    return f"{ABLATION}{name}" if is_change else f"{name} near keys"


def _make_panel(task, rows, problem=None):
    """Returns the `Panel` of the runs of all methods on one task."""
    problem = problem or _find_problem(rows[0]["command"])
    measure = next(
        name
        for name in MEASURES
        if all(f"{name}_by_length" in row for row in rows)
    )
    metric, label = find_metric(problem, measure)
    named = [{"method": _get_method(row), **row} for row in rows]
    return Panel(
        task=task,
        curves=[
            _make_curve(method, runs, measure, problem, metric)
            for method, runs in group(named, "method").items()
        ],
        measure=label.removeprefix("generated "),
        trained=find_spans(problem.trained_lengths),
        floors=_find_floors(rows[0], problem),
        is_share=metric.is_share,
        higher_is_better=metric.higher_is_better,
        length_name=problem.length_name,
    )


def _get_method(row):
    if "variant" not in row:
        return row.get("encoding", "")
    if row["variant"][0].isupper():
        return row["variant"]
    return f"T5Bias, scratchpad: {row['variant']}"


def _make_curve(method, rows, measure, problem, metric):
    """Returns the `Curve` of the median of some runs."""
    runs = []
    for row in rows:
        counted = row.get("counted", 1.0) * metric.is_share
        parts = (
            row.get(f"{measure}{end}_by_length", {})
            for end in ("", "_low", "_high")
        )
        runs.append(
            estimate(
                *({int(n): by[n] for n in by} for by in parts),
                lambda n, counted=counted: (
                    counted and counted * problem.evaluation_examples(n)
                ),
            )
        )
    values = {
        n: statistics.median(run[n][0] for run in runs if n in run)
        for n in dict.fromkeys(n for run in runs for n in run)
    }
    minutes = statistics.median(row["training_seconds"] for row in rows) / 60
    curve = combine(method, runs, values, minutes=round(minutes, 1))
    rounded = {
        name: _round(getattr(curve, name)) for name in ("values", "low", "high")
    }
    return dataclasses.replace(curve, **rounded)


def _round(values):
    return [value if value is None else round(value, 3) for value in values]


def _find_floors(row, problem):
    """Returns floors by length, or their mean at the unseen lengths."""
    unseen = [n for n in problem.lengths if n > problem.longest_trained]
    floors = []
    for name, label in problem.floor_labels.items():
        by_length = row.get(f"{name}_by_length")
        if by_length is None and row.get(name) is not None:
            by_length = {n: row[name] for n in (min(unseen), max(unseen))}
        if by_length:
            lengths = [*map(int, by_length)]
            values = _round(by_length.values())
            floors.append(Curve(label, lengths, values, runs=0))
    return floors


@functools.cache
def _find_problem(command):
    """Makes the `Problem` of the run of a command."""
    _, _, module, *words = shlex.split(command)
    trainer = module.removeprefix("trainers.")
    flags = dict(word.removeprefix("--").split("=", 1) for word in words)
    run = Run(trainer=trainer, flags={}, row="", column="")
    (run,), arguments = with_overrides([run], flags)
    experiment = registered()[trainer]
    config = resolve(
        experiment.config, experiment.presets, {**run.flags, **arguments}
    )
    return make_problem({"trainer": trainer, "config": vars(config)})


def _make_images():
    rows = read_rows("images")
    lengths = [*map(int, rows[0]["accuracy"])]
    return Panel(
        task="images of digits",
        curves=[
            Curve(
                row["encoding"],
                lengths,
                _round(row["accuracy"].values()),
                minutes=round(row["training_seconds"] / 60, 1),
            )
            for row in rows
        ],
        trained=[(lengths[0], lengths[0])],
        length_name="size",
        length_labels=[
            rows[0]["train_size"],
            *rows[0]["test_sizes"].split(","),
        ],
    )
