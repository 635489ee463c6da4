"""The plot of accuracy against length."""

import os
import pathlib

from trainers.workdir import writing


def plot_lengths(path, curves, *, title, longest_trained, floors):
    """Draws accuracy against length, with the trained lengths shaded.

    Args:
        path: PNG file to write.
        curves: `{label: {length: accuracy}}`.
        title: Title of the plot.
        longest_trained: Largest trained length.
        floors: `{label: {length: accuracy}}` of trivial predictors.

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
    for (label, curve), color in zip(curves.items(), _COLORS, strict=False):
        axes.plot(*_points(curve), marker="o", ms=3, color=color, label=label)
    for (label, curve), style in zip(floors.items(), ("--", ":"), strict=False):
        axes.plot(*_points(curve), style, color="0.4", label=label)
    axes.set(
        xlabel="length",
        ylabel="accuracy",
        title=title,
        ylim=(0, 1.03),
        xlim=(0, max(max(_points(curve)[0]) for curve in curves.values()) + 1),
    )
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left")
    path = pathlib.Path(path)
    beside = path.with_suffix(".partial.png")
    with writing(path):
        plot.savefig(beside, dpi=120)
        os.replace(beside, path)
    return path


# Distinguishable without red and green.
_COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def _points(curve):
    points = sorted((int(length), value) for length, value in curve.items())
    return [list(column) for column in zip(*points, strict=True)]
