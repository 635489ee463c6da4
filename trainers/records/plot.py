"""Plots of a metric against length."""

import pathlib
import textwrap

from keras_lengen.evaluation import plot as length_plot
from keras_lengen.evaluation.plot import SHADE, find_spans
from trainers.records.files import replacing
from trainers.records.results import choose_metric
from trainers.records.styles import (
    COLORS,
    MARKERS,
    Style,
    choose_floor_styles,
    choose_styles,
)


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
    plot = figure.Figure(figsize=(7, 4))
    _draw_lengths(plot.subplots(), results, problem)
    _save(plot, path)
    metric = problem.metrics[0]
    if any(
        f"{metric.name}_by_position" in r["final"] for r in results.values()
    ):
        plot = figure.Figure(figsize=(7, 8))
        upper, lower = plot.subplots(2, gridspec_kw={"hspace": 0.7})
        _draw_positions(upper, results, problem)
        _draw_unseen(lower, results, problem)
        _save(plot, path.with_stem(f"{path.stem}_positions"))


def _draw_lengths(axes, results, problem):
    name, _ = choose_metric(results.values(), problem.metrics[0].name)
    first = next(iter(results.values()))
    curves = {
        label: result["final"][f"{name}_by_length"]
        for label, result in results.items()
    }
    styles = choose_styles(curves)
    draw_curves(axes, curves, styles)
    band = "95% interval"
    for label, result in results.items():
        bounds = [
            result["final"].get(f"{name}_{end}_by_length")
            for end in ("low", "high")
        ]
        if all(bounds):
            (lengths, low), (_, high) = map(_points, bounds)
            color = styles[label].color
            _draw_band(axes, lengths, low, high, color, band)
            band = None
    floors = {
        label: first[f"{floor}_by_length"]
        for floor, label in problem.floor_labels.items()
    }
    draw_curves(axes, floors, choose_floor_styles(floors))
    _shade_lengths(axes, problem)
    axis = problem.length_name
    title = f"trained on {describe_lengths(problem)}"
    _finish_axes(axes, problem, axis, title, name=name)
    lengths = sorted({int(n) for curve in curves.values() for n in curve})
    _scale_lengths(axes, problem, lengths)


def _draw_positions(axes, results, problem):
    """Draws the metric at the positions of each length.

    Of several results, it draws the longest length only.
    """
    key = f"{problem.metrics[0].name}_by_position"
    curves = {}
    for label, result in results.items():
        by_length = result["final"].get(key, {})
        lengths = sorted(by_length, key=int)
        for length in lengths if len(results) == 1 else lengths[-1:]:
            curves[f"{label}, length {length}"] = by_length[length]
    # The lengths of one result have colors of their own.
    styles = choose_styles(curves) if len(results) > 1 else None
    draw_curves(axes, curves, styles)
    longest = problem.longest_trained
    label = f"within the longest trained {problem.length_name}"
    axes.axvspan(0, longest, color=SHADE, zorder=0, label=label)
    _finish_axes(axes, problem, "position", "at each position")
    axes.set_xlim(0, None)


def _draw_unseen(axes, results, problem):
    """Draws which part of a sequence training has not covered."""
    curves = {
        f"{label}, {kind}": result["final"][f"unseen_{kind}_by_length"]
        for label, result in results.items()
        for kind in ("positions", "distances")
        if f"unseen_{kind}_by_length" in result["final"]
    }
    draw_curves(axes, curves, choose_styles(curves))
    axes.set(
        xlabel=problem.length_name,
        ylabel="not seen in training (fraction)",
        title="positions and distances beyond training",
        ylim=(-0.02, 1.03),
    )
    axes.grid(alpha=0.3)
    lengths = sorted({int(n) for curve in curves.values() for n in curve})
    if lengths:
        _scale_lengths(axes, problem, lengths)
        add_legend(axes)


def draw_curves(axes, curves, styles=None):
    """Draws curves; without styles, by label, the colors take turns.

    Args:
        axes: `matplotlib.axes.Axes`.
        curves: Dict from labels to dicts from lengths to values.
        styles: Dict from labels to a `Style`; or `None`.
    """
    for number, (label, curve) in enumerate(curves.items()):
        color = COLORS[number % len(COLORS)]
        marker = MARKERS[number // len(COLORS) % len(MARKERS)]
        style = styles[label] if styles else Style(color, (), marker)
        axes.plot(
            *_points(curve),
            linestyle=(0, style.dash) if style.dash else "-",
            marker=_MARKERS[style.marker],
            ms=3.5,
            color=style.color,
            label=label,
        )


def _draw_band(axes, lengths, low, high, color, label):
    """Draws a band around a curve; `label` names it, unless it is `None`."""
    axes.fill_between(lengths, low, high, color=color, alpha=0.2, lw=0)
    # Gray: the bands of all curves have one entry in the legend.
    _add_entry(axes, "0.78", label)


def _shade_lengths(axes, problem):
    """Shades the trained lengths, behind the curves, and no others."""
    length_plot.shade_lengths(axes, problem.trained_lengths)
    _add_entry(axes, SHADE, f"trained {problem.length_name}s")


def _add_entry(axes, color, label):
    """Adds the entry of a filled area to the legend, if it has a label."""
    if label:
        axes.fill_between([], [], [], color=color, lw=0, label=label)


def describe_lengths(problem):
    """Describes the trained lengths of a problem, as in `lengths 1-20`."""
    name, describe = f"{problem.length_name}s", problem.describe_length
    spans = find_spans(problem.trained_lengths)
    if len(spans) > NAMED_SPANS:
        first, last = problem.trained_lengths[0], problem.longest_trained
        return f"{name} from {describe(first)} to {describe(last)}"
    if spans == [(problem.longest_trained,) * 2]:
        name = problem.length_name
    ends = [list(dict.fromkeys(map(describe, span))) for span in spans]
    # A name may be a range itself.
    has_ranges = any("-" in end for span in ends for end in span)
    named = ((" to " if has_ranges else "-").join(span) for span in ends)
    return f"{name} {', '.join(named)}"


def _scale_lengths(axes, problem, lengths):
    """Scales an axis of lengths so that the trained ones can be seen.

    Args:
        axes: `matplotlib.axes.Axes` with the curves.
        problem: Their `Problem`.
        lengths: Non-empty list of int. The lengths of the curves, increasing.
    """
    length_plot.scale_lengths(axes, lengths, problem.longest_trained)
    names = list(map(problem.describe_length, lengths))
    if names != list(map(str, lengths)):
        axes.set_xticks(lengths, names, rotation=45)
        legend = axes.get_legend()
        if legend:
            legend.set_bbox_to_anchor((0.5, BELOW_NAMES), axes.transAxes)


def _finish_axes(axes, problem, xlabel, title, *, name=None):
    """Labels a plot of a metric, and adds its legend.

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
    name = (name or metric.name).replace("_", " ")
    axes.set(
        xlabel=xlabel,
        ylabel=name if metric.unit in ("", name) else f"{name} ({metric.unit})",
        title=f"{problem.title}: {title}",
    )
    if metric.is_share:
        axes.set_ylim(0, 1.03)
    if metric.second_unit:
        unit, factor = metric.second_unit
        convert = (lambda value: value * factor, lambda value: value / factor)
        axes.secondary_yaxis("right", functions=convert).set_ylabel(unit)
    axes.grid(alpha=0.3)
    add_legend(axes)


def add_legend(axes):
    """Adds a legend below the curves, which it would hide."""
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(
        handles,
        # A name is broken at its spaces, not within a value.
        [
            textwrap.fill(
                label,
                LEGEND_WIDTH,
                break_long_words=False,
                break_on_hyphens=False,
            )
            for label in labels
        ],
        loc="upper center",
        bbox_to_anchor=(0.5, BELOW_NUMBERS),
        ncols=2,
        frameon=False,
        fontsize="small",
        handlelength=3,
    )


def _save(plot, path):
    with replacing(path) as file:
        save_figure(plot, file)
    print(f"plot: {path}")


def save_figure(plot, file):
    """Writes a `matplotlib.figure.Figure`, as large as its legends need."""
    plot.savefig(file, format="png", dpi=120, bbox_inches="tight")


BELOW_NUMBERS, BELOW_NAMES = -0.16, -0.3
"""Top of a legend below numbers of lengths, and below names that are rotated,
in heights of the curves."""

LEGEND_WIDTH = 40
"""Most characters of a line of a legend."""

NAMED_SPANS = 4
"""Most spans of trained lengths that a title names."""

_MARKERS = dict(zip((*MARKERS, "stroke"), (*"os^Dv", ""), strict=True))
"""Markers of matplotlib."""


def _points(curve):
    points = sorted((int(length), value) for length, value in curve.items())
    return [list(column) for column in zip(*points, strict=True)]
