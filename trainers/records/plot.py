"""Plots of a metric against length."""

import itertools
import pathlib
import textwrap

from trainers.records.files import replacing
from trainers.records.results import choose_metric


def plot_results(path, results, problem):
    """Draws the first metric of several results in one plot.

    Where it was measured at each position, too, a second plot shows that, and
    which part of the positions and distances of a length is new.

    Args:
        path: PNG file to write, or directory for `length_generalization.png`.
        results: Dict from labels to contents of `results.json`.
        problem: The `Problem` of them all.
    """
    path = pathlib.Path(path)
    if path.suffix != ".png":
        path /= "length_generalization.png"
    try:
        from matplotlib import figure
    except ImportError:
        print("no plot: matplotlib is not installed (extra: plots)")
        return
    plot = figure.Figure(figsize=(7, 4), layout="constrained")
    _draw_lengths(plot.subplots(), results, problem)
    _save(plot, path)
    metric = problem.metrics[0]
    if any(
        f"{metric.name}_by_position" in r["final"] for r in results.values()
    ):
        plot = figure.Figure(figsize=(11, 4), layout="constrained")
        left, right = plot.subplots(1, 2)
        _draw_positions(left, results, problem)
        _draw_unseen(right, results, problem)
        _save(plot, path.with_stem(f"{path.stem}_positions"))


def _draw_lengths(axes, results, problem):
    name, _ = choose_metric(results.values(), problem.metrics[0].name)
    first = next(iter(results.values()))
    curves = {
        label: result["final"][f"{name}_by_length"]
        for label, result in results.items()
    }
    _draw_curves(axes, curves)
    for number, result in enumerate(results.values()):
        bounds = [
            result["final"].get(f"{name}_{end}_by_length")
            for end in ("low", "high")
        ]
        if all(bounds):
            (lengths, low), (_, high) = map(_points, bounds)
            color = COLORS[number % len(COLORS)]
            axes.fill_between(lengths, low, high, color=color, alpha=0.2)
    for (floor, label), style in zip(
        problem.floor_labels.items(), ("--", ":"), strict=False
    ):
        points = _points(first[f"{floor}_by_length"])
        axes.plot(*points, style, color="0.4", label=label)
    axis = problem.length_name
    longest = problem.describe_length(problem.longest_trained)
    title = f"trained on {axis}s up to {longest}"
    finish_axes(axes, problem, axis, title, name=name)
    lengths = sorted({int(n) for curve in curves.values() for n in curve})
    names = list(map(problem.describe_length, lengths))
    if names != list(map(str, lengths)):
        axes.set_xticks(lengths, names, rotation=45)


def _draw_positions(axes, results, problem):
    """Draws the metric at the positions of each length.

    Of several results, it draws the longest length alone.
    """
    key = f"{problem.metrics[0].name}_by_position"
    curves = {}
    for label, result in results.items():
        by_length = result["final"].get(key, {})
        lengths = sorted(by_length, key=int)
        for length in lengths if len(results) == 1 else lengths[-1:]:
            curves[f"{label}, length {length}"] = by_length[length]
    _draw_curves(axes, curves)
    finish_axes(axes, problem, "position", "at each position")


def _draw_unseen(axes, results, problem):
    """Draws which part of a sequence training has not covered."""
    _draw_curves(
        axes,
        {
            f"{label}, {kind}": result["final"][f"unseen_{kind}_by_length"]
            for label, result in results.items()
            for kind in ("positions", "distances")
            if f"unseen_{kind}_by_length" in result["final"]
        },
    )
    axes.set(
        xlabel="length",
        ylabel="not seen in training (fraction)",
        title="positions and distances beyond training",
        ylim=(-0.02, 1.03),
        xlim=(0, None),
    )
    axes.grid(alpha=0.3)
    if axes.lines:
        _add_legend(axes)


def _draw_curves(axes, curves):
    styles = itertools.product(_STYLES, COLORS)
    for (label, curve), (style, color) in zip(
        curves.items(), itertools.cycle(styles), strict=False
    ):
        axes.plot(*_points(curve), style, ms=3, color=color, label=label)


def finish_axes(axes, problem, xlabel, title, *, name=None):
    """Labels a plot of a metric, and shades the trained lengths.

    Args:
        axes: `matplotlib.axes.Axes` with the curves.
        problem: Their `Problem`.
        xlabel: str. What the horizontal axis shows.
        title: str. What stands behind the title of the problem.
        name: str. Name of the metric; `None`: the first one.
    """
    named = {metric.name: metric for metric in problem.metrics}
    metric = named.get((name or "").removeprefix("generated_"))
    metric = metric or problem.metrics[0]
    axes.axvspan(
        0,
        problem.longest_trained,
        color="0.92",
        label=f"trained {problem.length_name}s",
    )
    name = (name or metric.name).replace("_", " ")
    axes.set(
        xlabel=xlabel,
        ylabel=name if metric.unit in ("", name) else f"{name} ({metric.unit})",
        title=f"{problem.title}: {title}",
        xlim=(0, None),
    )
    if metric.is_share:
        axes.set_ylim(0, 1.03)
    axes.grid(alpha=0.3)
    _add_legend(axes)


def _add_legend(axes):
    handles, labels = axes.get_legend_handles_labels()
    # A legend wider than the plot would take its room.
    wrapped = [textwrap.fill(label, LEGEND_WIDTH) for label in labels]
    small = len(labels) > 5 or wrapped != labels
    axes.legend(
        handles, wrapped, loc="best", fontsize="x-small" if small else None
    )


def _save(plot, path):
    with replacing(path) as file:
        plot.savefig(file, format="png", dpi=120)
    print(f"plot: {path}")


LEGEND_WIDTH = 50
"""Most characters of a line of a legend."""

COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Distinguishable without red and green."""

_STYLES = ("o-", "s--", "^-.", "v:")


def _points(curve):
    points = sorted((int(length), value) for length, value in curve.items())
    return [list(column) for column in zip(*points, strict=True)]
