"""Runs that belong to no grid, as a grid."""

import dataclasses

from trainers.errors import ConfigError
from trainers.options.option import options
from trainers.records.opened_run import (
    are_of_other_data,
    make_problem,
    registered,
)
from trainers.records.results import choose_metric
from trainers.reports.published import find_statistic
from trainers.sweeps.grids import Grid, Run, find_match

KEPT = ("seed", "task", "dataset", "encoding", "initialize_from")
"""Flags that no column is named after: they have a cell, or are averaged."""


def make_grid(found, published):
    """Makes the grid of given runs.

    Args:
        found: List of `trainers.reports.reading.Saved`.
        published: str. Name of a file of published numbers, or empty.

    Raises:
        ConfigError: If runs have different metrics, or a row has different
            data.
    """
    _check_data(found)
    runs = [
        Run(
            trainer=saved.trainer,
            flags=saved.config,
            row=make_problem(vars(saved)).title,
            column=saved.config.get("encoding", ""),
        )
        for saved in found
    ]
    results = [saved.results for saved in found if saved.results is not None]
    metric, *further = sorted({r["score_metric"] for r in results}) or ["score"]
    if further:
        raise ConfigError(
            f"the runs have different metrics, {metric}, {', '.join(further)}: "
            "report runs with the same one."
        )
    _, score = choose_metric(results, metric)
    metrics = results and make_problem(results[0]).metrics
    return Grid(
        name="runs",
        title="Report of runs",
        size="",
        runs=tuple(_name_column(run, runs) for run in runs),
        score=score,
        unit="%" if metrics and metrics[0].is_share else "",
        statistic=find_statistic(published) if published else "mean",
        higher_is_better=not metrics or metrics[0].higher_is_better,
        **_show_published(published),
    )


def _check_data(found):
    firsts: dict = {}
    for saved in found:
        if saved.results is not None:
            title = make_problem(vars(saved)).title
            first = firsts.setdefault((saved.trainer, title), saved)
            if are_of_other_data(first.results, saved.results):
                raise ConfigError(
                    f"{first.path} and {saved.path} are on different data: "
                    "report runs on the same data."
                )


def _show_published(file):
    return {"published": (file,), "match": find_match(file)} if file else {}


def _name_column(run, runs):
    """Returns a run whose column also has the flags that differ."""
    known = options(registered()[run.trainer].config)
    differing = [
        f"{name}={value}"
        for name, value in run.flags.items()
        if name in known and name not in KEPT and known[name].changes_result
        if any(value != other.flags.get(name) for other in runs)
    ]
    column = ", ".join([run.column, *differing])
    return dataclasses.replace(run, column=column)
