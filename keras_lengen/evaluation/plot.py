"""Plots of a metric against length, by matplotlib."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keras_lengen.evaluation.intervals import Estimate

COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Distinguishable without red and green."""

SHADE = "0.91"
"""Gray of trained lengths."""

LINEAR_RANGE = 10
"""Longest length, over the longest trained one, up to which axes are linear."""


def draw_lengths(
    curve: Mapping[int, Estimate],
    *,
    trained: Sequence[int],
    ylabel: str,
    floor: float | Mapping[int, float] | None = None,
    label: str | None = None,
    axes: Any = None,
) -> Any:
    """Draws one curve with its intervals. For arguments see `LengthResults`."""
    if axes is None:
        axes = _make_axes()
    lengths = list(curve)
    values, low, high = zip(*curve.values(), strict=True)
    color = COLORS[len(axes.collections) % len(COLORS)]
    axes.plot(lengths, values, "o-", ms=3, color=color, label=label)
    axes.fill_between(lengths, low, high, color=color, alpha=0.2, lw=0)
    if floor is not None:
        levels = (
            [floor[n] for n in lengths]
            if isinstance(floor, Mapping)
            else [floor] * len(lengths)
        )
        axes.plot(lengths, levels, "--", color="0.4", label="floor")
    shade_lengths(axes, trained)
    axes.set(xlabel="length", ylabel=ylabel)
    if all(0 <= value <= 1 for value in values):
        axes.set_ylim(0, 1.03)
    scale_lengths(axes, lengths, max(trained, default=min(lengths)))
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize="small")
    return axes


def shade_lengths(axes: Any, lengths: Iterable[int]) -> None:
    """Shades the given lengths, behind the curves, and no others."""
    for first, last in find_spans(lengths):
        # The edge makes a single length visible.
        axes.axvspan(first, last, color=SHADE, lw=4, zorder=0)


def find_spans(lengths: Iterable[int]) -> list[tuple[int, int]]:
    """Returns the first and the last of lengths without gaps between them."""
    # In such a span, a length and its number grow alike.
    groups = itertools.groupby(
        enumerate(lengths), lambda pair: pair[1] - pair[0]
    )
    spans = ([length for _, length in group] for _, group in groups)
    return [(span[0], span[-1]) for span in spans]


def scale_lengths(axes: Any, lengths: Sequence[int], trained: int) -> None:
    """Scales the axis of lengths so that the trained ones can be seen.

    Args:
        axes: `matplotlib.axes.Axes` with the curves.
        lengths: Non-empty list of int. The lengths of the curves, increasing.
        trained: int. The longest trained length.
    """
    from matplotlib import ticker

    if lengths[-1] > LINEAR_RANGE * trained:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.xaxis.set_minor_locator(ticker.NullLocator())
    else:
        axes.set_xlim(0, None)


def _make_axes() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "plots need matplotlib: pip install 'keras_lengen[plots]'."
        ) from error
    return pyplot.subplots(figsize=(7, 4))[1]
