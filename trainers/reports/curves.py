"""Curves of the runs of a table against length."""

import statistics

from keras_lengen.evaluation import wilson_interval
from keras_lengen.evaluation.plot import find_spans
from trainers.records.opened_run import make_problem
from trainers.records.plot import describe_lengths
from trainers.reports.chart import Curve, Panel
from trainers.reports.reading import find_scale, name_curve

KINDS = {"max": "best runs", "min": "best runs", "mean": "means"}
"""What curves are, by the statistic of the table."""


def make_panels(grid, cells):
    """Makes the curves of each problem.

    A curve is that of the run with the best score or, of a grid of means, the
    mean over the runs. Its intervals reach from the lowest to the highest end
    of those of the runs.

    Args:
        grid: The `Grid`.
        cells: List of its `Cell`s.

    Returns:
        Dict with a `Panel` for each problem with a finished run.
    """
    by_problem: dict[str, dict] = {}
    for cell in cells:
        if any(run.curve for run in cell.counted):
            found = by_problem.setdefault(cell.problem, {})
            found.setdefault((cell.row, cell.column), []).append(cell)
    return {
        problem: _make_panel(grid, list(found.values()))
        for problem, found in by_problem.items()
    }


def estimate(values, low, high, count):
    """Adds to the values of a run their 95% confidence intervals.

    Args:
        values: Dict from lengths to values.
        low: Dict from lengths to the lower ends that were measured.
        high: Dict from lengths to the upper ends.
        count: Function of a length that returns the number of examples of
            which a value is the share; 0: it is no share, or of unknown many.

    Returns:
        Dict from lengths to values and the ends of their intervals, which are
        `None` if they are unknown.
    """
    found = {}
    for length, value in values.items():
        ends = low.get(length), high.get(length)
        if None in ends and (examples := count(length)):
            # An accuracy varies at most as much as a share of examples.
            ends = wilson_interval(value, examples)
        found[length] = (value, *ends)
    return found


def combine(method, runs, values, **known):
    """Makes the `Curve` of several runs.

    Args:
        method: str.
        runs: List of what `estimate` returns of each run.
        values: Dict from lengths to values of the curve.
        **known: Further attributes of the curve.
    """
    lengths = sorted(values)
    ends = [
        [[run[n][end] for run in runs if n in run] for n in lengths]
        for end in (1, 2)
    ]
    low, high = (
        [None if None in column else choose(column) for column in columns]
        for choose, columns in zip((min, max), ends, strict=True)
    )
    curve = [values[n] for n in lengths]
    return Curve(method, lengths, curve, low, high, runs=len(runs), **known)


def find_metric(problem, measure):
    """Returns the `Metric` of a measure, and the label of its axis."""
    name = measure.removeprefix("generated_")
    named = {metric.name: metric for metric in problem.metrics}
    metric = named.get(name, problem.metrics[0])
    label = measure.replace("_", " ")
    has_unit = metric.unit not in ("", name.replace("_", " "))
    return metric, f"{label} ({metric.unit})" if has_unit else label


def _make_panel(grid, groups):
    cells = [group[0] for group in groups]
    first = next(run for run in cells[0].counted)
    problem = make_problem(first.results)
    measure = name_curve(grid, first.results).removesuffix("_by_length")
    metric, label = find_metric(problem, measure)
    runs = [run for cell in cells for run in cell.counted]
    known = [make_problem(run.results).trained_lengths for run in runs]
    # The runs of a picture may differ in their trained lengths.
    is_same = len(set(known)) == 1
    lengths = sorted({length for run in runs for length in run.curve})
    names = [*map(problem.describe_length, lengths)]
    trained = f", trained on {describe_lengths(problem)}" if is_same else ""
    return Panel(
        task=problem.title,
        curves=[
            _make_curve(grid, group, name, measure, metric)
            for name, group in zip(_label(cells), groups, strict=True)
        ],
        measure=label,
        trained=find_spans(problem.trained_lengths) if is_same else (),
        floors=_find_floors(problem, first.results, measure),
        is_share=metric.is_share,
        higher_is_better=metric.higher_is_better,
        note=KINDS[grid.statistic] + trained,
        length_name=problem.length_name,
        length_labels=() if names == [*map(str, lengths)] else names,
    )


def _make_curve(grid, group, name, measure, metric):
    cell = group[0]
    counted = (
        "generated_examples"
        if measure.startswith("generated_")
        else "evaluation_examples"
    )
    # 0 stands for all examples that there are.
    runs = [
        estimate(
            run.curve,
            run.low,
            run.high,
            lambda _, run=run: (
                run.config.get(counted, 0) if metric.is_share else 0
            ),
        )
        for run in cell.counted
    ]
    lengths = sorted(set.intersection(*map(set, runs)))
    if grid.statistic == "mean":
        values = {n: statistics.fmean(r[n][0] for r in runs) for n in lengths}
    else:
        choose = {"max": max, "min": min}[grid.statistic]
        best = choose(cell.counted, key=lambda run: run.scores[cell.length])
        values = {n: best.curve[n] for n in lengths}
    published = {
        p.length: p.published.value / find_scale(grid)
        for p in group
        if p.length is not None and p.published
    }
    seconds = [run.results["train"]["seconds"] for run in cell.counted]
    return combine(
        name,
        runs,
        values,
        minutes=statistics.median(seconds) / 60,
        published=published and [published.get(n) for n in lengths],
    )


def _find_floors(problem, results, measure):
    if measure.removeprefix("generated_") != problem.metrics[0].name:
        return []
    floors = []
    for floor, label in problem.floor_labels.items():
        by_length = results.get(f"{floor}_by_length", {})
        points = sorted((int(n), value) for n, value in by_length.items())
        if points:
            floors.append(Curve(label, *zip(*points, strict=True), runs=0))
    return floors


def _label(cells):
    """Returns a name for each cell: of row and column, those that differ."""
    keys = [(cell.row, cell.column) for cell in cells]
    differs = [len(set(names)) > 1 for names in zip(*keys, strict=True)]
    if not any(differs):
        differs = [False, True]
    return [
        ", ".join(n for n, shown in zip(key, differs, strict=True) if shown)
        for key in keys
    ]
