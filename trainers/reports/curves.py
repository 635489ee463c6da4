"""Curves of the runs of a table against length."""

import io
import re
import statistics

from keras_lengen.evaluation.intervals import student_estimate
from keras_lengen.evaluation.plot import COLORS
from trainers.records.opened_run import make_problem
from trainers.records.plot import (
    describe_lengths,
    draw_band,
    finish_axes,
    save_figure,
    scale_lengths,
    shade_lengths,
)
from trainers.reports.blocks import Picture
from trainers.reports.reading import find_scale, name_curve
from trainers.sweeps.grids.matching import RANDOMIZED

BANDS = 4
"""Most curves of a picture with bands: more would hide each other."""

PUBLISHED = "published"
"""Label of the published points, each in the color of its curve."""

MARKERS = ("o", "s", "^", "v")
"""Of the curves of one color."""


def draw_curves(grid, cells):
    """Draws the curves of each problem in one picture.

    A curve is that of the run with the best score or, of a grid of means, the
    mean over the runs. In a picture of few curves, bands are 95% intervals of
    means (Student's t), or reach from the lowest to the highest run.

    Args:
        grid: The `Grid`.
        cells: List of its `Cell`s.

    Returns:
        List of `Picture`s, one for each problem with a finished run.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    by_problem: dict[str, dict] = {}
    for cell in cells:
        if any(run.curve for run in cell.counted):
            found = by_problem.setdefault(cell.problem, {})
            found.setdefault((cell.row, cell.column), []).append(cell)
    return [_draw(grid, list(found.values())) for found in by_problem.values()]


def _draw(grid, groups):
    from matplotlib import figure

    cells = [group[0] for group in groups]
    first = next(run for run in cells[0].counted)
    problem = make_problem(first.results)
    # The legend stands beside the curves.
    height = max(4.5, 0.2 * (len(groups) + 4))
    plot = figure.Figure(figsize=(8, height))
    axes = plot.subplots()
    name = name_curve(grid, first.results).removesuffix("_by_length")
    labels = _label(cells)
    colors = _choose_colors(labels)
    for label, group in zip(labels, groups, strict=True):
        _draw_cell(axes, grid, group, label, *colors[label])
    if len(groups) <= BANDS:
        found = [colors[label][0] for label in labels]
        _draw_bands(axes, cells, found, is_mean=grid.statistic == "mean")
    for (floor, label), style in zip(
        problem.floor_labels.items(), ("--", ":"), strict=False
    ):
        is_of_metric = (
            name.removeprefix("generated_") == problem.metrics[0].name
        )
        if is_of_metric and f"{floor}_by_length" in first.results:
            by = first.results[f"{floor}_by_length"]
            points = sorted((int(n), value) for n, value in by.items())
            axes.plot(
                *zip(*points, strict=True), style, color="0.4", label=label
            )
    kind = {"max": "best runs", "min": "best runs", "mean": "means"}
    title = kind[grid.statistic]
    runs = [run for cell in cells for run in cell.counted]
    known = [make_problem(run.results).trained_lengths for run in runs]
    # The runs of a picture may differ in their trained lengths.
    if len(set(known)) == 1:
        shade_lengths(axes, problem)
        title += f", trained on {describe_lengths(problem)}"
    finish_axes(axes, problem, problem.length_name, title, name=name)
    lengths = sorted({length for run in runs for length in run.curve})
    scale_lengths(axes, problem, lengths)
    file = io.BytesIO()
    save_figure(plot, file)
    readable = re.sub(r"\W+", "-", cells[0].problem).strip("-")
    text = f"{problem.title}: {name.replace('_', ' ')} at each length"
    return Picture(f"{readable}.png", text, file.getvalue())


def _draw_cell(axes, grid, group, label, color, style, marker):
    cell = group[0]
    curves = [run.curve for run in cell.counted]
    lengths = sorted(set.intersection(*map(set, curves)))
    columns = [[curve[n] for curve in curves] for n in lengths]
    if grid.statistic == "mean":
        line = [statistics.fmean(column) for column in columns]
    else:
        choose = {"max": max, "min": min}[grid.statistic]
        best = choose(cell.counted, key=lambda run: run.scores[cell.length])
        line = [best.curve[n] for n in lengths]
    few = marker if len(lengths) < 12 else ""
    axes.plot(lengths, line, style, marker=few, ms=3, color=color, label=label)
    published = [p for p in group if p.length is not None and p.published]
    if published:
        known = axes.get_legend_handles_labels()[1]
        axes.plot(
            [p.length for p in published],
            [p.published.value / find_scale(grid) for p in published],
            linestyle="",
            marker="x" if style == "-" else "+",
            ms=7,
            color=color,
            label=None if PUBLISHED in known else PUBLISHED,
        )


def _draw_bands(axes, cells, colors, *, is_mean):
    name = "95% interval" if is_mean else "lowest to highest run"
    for cell, color in zip(cells, colors, strict=True):
        curves = [run.curve for run in cell.counted]
        if len(curves) < 2:
            continue
        lengths = sorted(set.intersection(*map(set, curves)))
        columns = [[curve[n] for curve in curves] for n in lengths]
        low, high = (
            zip(*[student_estimate(c)[1:] for c in columns], strict=True)
            if is_mean
            else ([choose(c) for c in columns] for choose in (min, max))
        )
        draw_band(axes, lengths, low, high, color, name)
        name = None


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


def _choose_colors(labels):
    """Returns the color, line and marker of each curve.

    A randomized form has the color of its encoding, which is dashed beside it.
    """
    forms = {label: _split(label) for label in labels}
    plain = list(dict.fromkeys(name for name, _ in forms.values()))
    chosen = {}
    for label, (name, randomized) in forms.items():
        index = plain.index(name)
        beside = not randomized and (name, True) in forms.values()
        chosen[label] = (
            COLORS[index % len(COLORS)],
            "--" if beside else "-",
            MARKERS[index // len(COLORS) % len(MARKERS)],
        )
    return chosen


def _split(label):
    """Returns the encoding of a label, and whether it is randomized."""
    name = label.removesuffix(", plain").removesuffix(", randomized")
    randomized = RANDOMIZED in name or label.endswith(", randomized")
    return name.replace(RANDOMIZED, "", 1), randomized
