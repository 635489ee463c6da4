"""Curves against length as a specification of Vega-Lite."""

import dataclasses
import json
import math
from collections.abc import Sequence

from trainers.records.styles import GRAY, choose_floor_styles, choose_styles

LINEAR_RANGE = 10
"""Longest length, over the longest trained one, up to which axes are linear."""


MANY = 40
"""Most lengths of a panel that have large points."""


@dataclasses.dataclass(frozen=True)
class Curve:
    """What one method reached on a task, at each length.

    Attributes:
        method: str. Its name, unique in its panel.
        lengths: Sequence of int, increasing.
        values: Sequence of float, one for each length.
        low: Sequence of float, the lower ends of intervals, `None` where it is
            unknown; empty: none is known.
        high: Sequence of float, the upper ends.
        published: Sequence of published values, with `None`; or empty.
        minutes: float. Median training time of a run; `None`: unknown.
        runs: int. Number of runs that it summarizes; 0: it is a floor.
    """

    method: str
    lengths: Sequence[int]
    values: Sequence[float]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    published: Sequence[float | None] = ()
    minutes: float | None = None
    runs: int = 1


@dataclasses.dataclass(frozen=True)
class Panel:
    """A task, and the curves of all methods that were trained on it.

    Attributes:
        task: str. Its name.
        curves: Sequence of `Curve`s, at least one.
        measure: str. What values are, such as `"accuracy"`.
        trained: Sequence of spans of trained lengths, pairs of the first and
            the last length.
        floors: Sequence of `Curve`s of trivial predictors.
        is_share: bool. Whether values lie between 0 and 1.
        higher_is_better: bool. Whether higher values are better.
        note: str. What the curves are, such as `"means"`; may be empty.
        length_name: str. What a length is.
        length_labels: Sequence of str, the names of `lengths`; empty: the
            numbers.
    """

    task: str
    curves: Sequence[Curve]
    measure: str = "accuracy"
    trained: Sequence[tuple[int, int]] = ()
    floors: Sequence[Curve] = ()
    is_share: bool = True
    higher_is_better: bool = True
    note: str = ""
    length_name: str = "length"
    length_labels: Sequence[str] = ()

    @property
    def lengths(self):
        """All lengths of its curves, a tuple of int, increasing."""
        return tuple(sorted({n for each in self.curves for n in each.lengths}))

    @property
    def longest_trained(self):
        """The longest trained length, an int; 0: none is known."""
        return max((last for _, last in self.trained), default=0)

    @property
    def is_far(self):
        """Whether its longest length is far beyond the trained ones."""
        return self.lengths[-1] > LINEAR_RANGE * self.longest_trained > 0

    def choose_styles(self):
        """Returns the `Style` of each method and floor, a dict."""
        methods = choose_styles(curve.method for curve in self.curves)
        floors = choose_floor_styles(floor.method for floor in self.floors)
        return {**methods, **floors}


CONFIG = {"view": {"stroke": None}}


def draw_panels(panels, *, columns=1, size=(560, 320), title="", note=""):
    """Draws all curves of panels, each with a legend below it.

    Args:
        panels: Sequence of `Panel`s.
        columns: int. Number of panels beside each other.
        size: Pair of int. Width and height of a panel in pixels.
        title: str. Title of several panels.
        note: str. Line below this title.

    Returns:
        bytes of a PNG file.

    Raises:
        ImportError: If vl-convert-python is not installed.
    """
    import vl_convert

    spec = {
        "concat": [
            {
                **make_spec(panel),
                "title": ": ".join(filter(None, [panel.task, panel.note])),
                **dict(zip(("width", "height"), size, strict=True)),
            }
            for panel in panels
        ],
        "columns": columns,
        "title": {"text": title, "subtitle": note, "anchor": "middle"},
        "background": "white",
        "config": CONFIG,
        "resolve": {
            of: dict.fromkeys(("color", "shape", "strokeDash"), "independent")
            for of in ("scale", "legend")
        },
    }
    return vl_convert.vegalite_to_png(spec, scale=2)


def make_spec(panel, *, interactive=False):
    """Returns a specification of Vega-Lite, a dict.

    Args:
        panel: The `Panel`.
        interactive: bool. Whether parameters `from` and `to` of the
            specification, instead of a legend, are the shortest and the longest
            length that it shows. Removing rows of its data hides curves.
    """
    lengths, styles = panel.lengths, panel.choose_styles()
    first, last = lengths[0], lengths[-1]
    if interactive:
        first, last = "from", "to"
    length = {"field": "length", "type": "quantitative"}
    value = {"field": "value", "type": "quantitative", "title": panel.measure}
    kind = {"type": "log"} if panel.is_far else {"zero": False}
    domain = {
        "domainMin": {"expr": f"{first}"},
        "domainMax": {"expr": f"{last}"},
    }
    x = {
        **length,
        "title": panel.length_name,
        "scale": {**kind, **domain, "nice": False},
    }
    x["axis"] = _mark_lengths(panel)
    y = {**value, "scale": {"zero": False}}
    if panel.is_share:
        y["scale"] = {"domain": [0, 1]}
    # Many points would hide each other.
    size = 45 if len(lengths) <= MANY else 12
    low = {"field": "low", "type": "quantitative", "title": panel.measure}
    named = {"field": "method", "type": "nominal", "title": None}
    below = {
        "orient": "bottom",
        "columns": 2 if len(styles) < 20 else 3,
        "labelLimit": 0,
        "symbolFillColor": "transparent",
        "symbolSize": 200,
        "symbolStrokeWidth": 2,
        "symbolOpacity": 1,
        "rowPadding": 0,
    }
    shown = {"legend": None if interactive else below}

    def choose(read):
        scale = {"domain": [*styles], "range": [*map(read, styles.values())]}
        return {**named, "scale": scale, **shown}

    color = choose(lambda style: style.color)
    # Only the lines have a legend: filled symbols would hide their dashes.
    fill = {"field": "color", "type": "nominal", "scale": None}
    dash = choose(lambda style: list(style.dash) or [1, 0])
    shape = choose(lambda style: style.marker)
    tooltip = [
        {**named, "title": "method"},
        {**length, "title": panel.length_name},
        {**value, "format": ".3f"},
        {"field": "interval", "type": "nominal"},
        {"field": "runs", "type": "quantitative"},
        {"field": "minutes", "type": "quantitative", "format": ".1f"},
    ]
    return {
        "description": f"{panel.task}: {panel.measure} by {panel.length_name}",
        "data": {
            "values": [
                {**_make_row(curve), "color": styles[curve.method].color}
                for curve in (*panel.curves, *panel.floors)
            ]
        },
        "transform": [
            {"flatten": ["length", "value", "low", "high", "published"]},
            {"filter": f"{first} <= datum.length && datum.length <= {last}"},
            {
                "as": "interval",
                "calculate": "isValid(datum.low) ? format(datum.low, '.3f') + "
                "' to ' + format(datum.high, '.3f') : 'unknown'",
            },
        ],
        "encoding": {"x": x},
        "layer": [
            _shade_trained(panel),
            {
                "transform": [{"filter": "isValid(datum.low)"}],
                "mark": {"type": "area", "opacity": 0.18},
                "encoding": {"y": {**y, **low}, "y2": {"field": "high"}}
                # Methods may have the same color.
                | {"fill": fill, "detail": named},
            },
            {
                "mark": {"type": "line", "strokeWidth": 2, "clip": True},
                "encoding": {"y": y, "color": color, "strokeDash": dash},
            },
            {
                "mark": {"type": "point", "filled": True, "size": size}
                | {"opacity": 1},
                "encoding": {"y": y, "fill": fill, "shape": shape}
                | {"tooltip": tooltip},
            },
            *_add_published(panel, y, color),
        ],
    }


def _make_row(curve):
    """Returns a curve as a row of data, whose lists have one length."""
    lists = {
        "length": curve.lengths,
        "value": curve.values,
        "low": curve.low,
        "high": curve.high,
        "published": curve.published,
    }
    unknown = [None] * len(curve.lengths)
    return {
        "method": curve.method,
        **{name: _keep_finite(of) or unknown for name, of in lists.items()},
        "minutes": curve.minutes,
        "runs": curve.runs,
    }


def _keep_finite(values):
    """Replaces numbers that JSON does not have, such as a loss of `nan`."""
    return [n if n is not None and math.isfinite(n) else None for n in values]


def _mark_lengths(panel):
    """Returns the marks of the axis of lengths."""
    axis = {"labelOverlap": True, "tickMinStep": 1, "format": ",d"}
    if panel.length_labels:
        names = dict(zip(panel.lengths, panel.length_labels, strict=True))
        axis["values"] = [*names]
        axis["labelExpr"] = f"{json.dumps(names)}[datum.value]"
    elif panel.is_far:
        digits = range(len(str(panel.lengths[-1])))
        axis["values"] = [n * 10**digit for digit in digits for n in (1, 2, 5)]
    return axis


def _add_published(panel, y, color):
    """Yields a layer of crosses, if there are published values."""
    if any(curve.published for curve in panel.curves):
        yield {
            "transform": [{"filter": "isValid(datum.published)"}],
            "mark": {"type": "point", "shape": "cross", "size": 90},
            "encoding": {"y": {**y, "field": "published"}, "color": color},
        }


def _shade_trained(panel):
    spans = [{"first": first, "last": last} for first, last in panel.trained]
    return {
        "data": {"values": spans},
        # The edge makes a single length visible.
        "mark": {"type": "rect", "opacity": 0.15, "clip": True}
        | {"stroke": GRAY, "strokeWidth": 3},
        "encoding": {
            "x": {"field": "first", "type": "quantitative"},
            "x2": {"field": "last"},
            "color": {"value": GRAY},
        },
    }
