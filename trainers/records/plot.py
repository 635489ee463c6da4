"""Plots of a metric against length."""

import itertools
import pathlib

from trainers.records.files import replacing


def plot_results(path, results, problem):
    """Draws the first metric of several results in one plot.

    Args:
        path: PNG file to write, or directory for `length_generalization.png`.
        results: Dict from labels to contents of `results.json`.
        problem: The `Problem` of them all.
    """
    metric = problem.metrics[0]
    first = next(iter(results.values()))
    path = pathlib.Path(path)
    if path.suffix != ".png":
        path /= "length_generalization.png"
    written = plot_lengths(
        path,
        {
            label: result["final"][f"{metric.name}_by_length"]
            for label, result in results.items()
        },
        metric,
        title=f"{problem.title}: trained on lengths up to "
        f"{problem.longest_trained}",
        longest_trained=problem.longest_trained,
        floors={
            label: first[f"{name}_by_length"]
            for name, label in problem.floor_labels.items()
        },
    )
    if not written:
        print("no plot: matplotlib is not installed (extra: plots)")
        return
    print(f"plot: {written}")
    curves = {
        f"{label}, length {length}": by_position
        for label, result in results.items()
        for length, by_position in result["final"]
        .get(f"{metric.name}_by_position", {})
        .items()
    }
    if curves:
        written = plot_lengths(
            path.with_stem(f"{path.stem}_positions"),
            curves,
            metric,
            title=f"{problem.title}: at each position",
            longest_trained=problem.longest_trained,
            floors={},
            axis="position",
        )
        print(f"plot: {written}")


def plot_lengths(
    path, curves, metric, *, title, longest_trained, floors, axis="length"
):
    """Draws a metric against length, with the trained lengths shaded.

    Args:
        path: PNG file to write.
        curves: `{label: {length: value}}`.
        metric: The `Metric`.
        title: Title of the plot.
        longest_trained: The longest trained length.
        floors: `{label: {length: value}}` of trivial predictors.
        axis: str. Name of what curves are a function of.

    Returns:
        The path, or `None` where matplotlib is not installed.
    """
    try:
        from matplotlib import figure
    except ImportError:
        return None
    plot = figure.Figure(figsize=(7, 4), layout="constrained")
    axes = plot.subplots()
    axes.axvspan(0, longest_trained, color="0.92", label="trained lengths")
    styles = itertools.product(_STYLES, _COLORS)
    for (label, curve), (style, color) in zip(
        curves.items(), itertools.cycle(styles), strict=False
    ):
        axes.plot(*_points(curve), style, ms=3, color=color, label=label)
    for (label, curve), style in zip(floors.items(), ("--", ":"), strict=False):
        axes.plot(*_points(curve), style, color="0.4", label=label)
    name = metric.name.replace("_", " ")
    axes.set(
        xlabel=axis,
        ylabel=f"{name} ({metric.unit})" if metric.unit else name,
        title=title,
        xlim=(0, max(max(_points(curve)[0]) for curve in curves.values()) + 1),
    )
    if metric.is_share:
        axes.set_ylim(0, 1.03)
    axes.grid(alpha=0.3)
    axes.legend(loc="best")
    path = pathlib.Path(path)
    with replacing(path) as file:
        plot.savefig(file, format="png", dpi=120)
    return path


# Distinguishable without red and green.
_COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_STYLES = ("o-", "s--", "^-.", "v:")


def _points(curve):
    points = sorted((int(length), value) for length, value in curve.items())
    return [list(column) for column in zip(*points, strict=True)]
