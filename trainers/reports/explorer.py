"""Curves of many methods and tasks, among which a reader chooses, as HTML.

Vega-Lite draws them. `vl-convert-python` contains its JavaScript, a fifth of
that of plotly, and draws the same specifications as PNG files.
"""

import functools
import json
import pathlib
import statistics

from trainers.records.styles import MARKERS
from trainers.reports.chart import CONFIG, make_spec

GLYPHS = dict(zip(MARKERS, "●■▲◆▼", strict=True))
"""Markers as characters."""

TEMPLATE = pathlib.Path(__file__).with_name("explorer.html")


def make_fragment(panels):
    """Returns an element of HTML, a str that needs no other file or network.

    A reader chooses a panel, methods and lengths. Methods are listed from the
    best to the worst. A page may contain one such element.

    Args:
        panels: List of `trainers.reports.chart.Panel`s, at least one.

    Raises:
        ImportError: If vl-convert-python is not installed.
    """
    # A text with `</script>` would end the element.
    text = json.dumps([*map(_describe, panels)], separators=(",", ":"))
    text = text.replace("</", r"<\/")
    fragment = TEMPLATE.read_text().replace("{{panels}}", text)
    return fragment.replace("{{library}}", _bundle_library())


def _describe(panel):
    """Returns a panel for the script of the template, a dict."""
    spec = make_spec(panel, interactive=True)
    config = {"domainColor": "currentColor", "gridOpacity": 0.2}
    config |= {"gridColor": "currentColor", "tickColor": "currentColor"}
    spec |= {"width": "container", "height": "container"}
    spec |= {"background": None, "config": {**CONFIG, "axis": config}}
    notes = {c.method: _note(panel, c) for c in rank_curves(panel)}
    floors = {floor.method: "a trivial predictor" for floor in panel.floors}
    styles = panel.choose_styles()
    return {
        "task": panel.task,
        "note": panel.note,
        "lengths": [
            *zip(
                panel.lengths,
                panel.length_labels or map("{:,}".format, panel.lengths),
                strict=True,
            )
        ],
        "entries": [
            {
                "name": name,
                "note": note,
                "color": styles[name].color,
                "dash": styles[name].dash,
                "marker": GLYPHS.get(styles[name].marker, ""),
                "isFloor": name in floors,
            }
            for name, note in (notes | floors).items()
        ],
        "spec": spec,
    }


def _average(panel, curve):
    """Averages over the lengths above the trained ones, or over all."""
    unseen = [
        value
        for length, value in zip(curve.lengths, curve.values, strict=True)
        if length > panel.longest_trained
    ]
    return statistics.fmean(unseen or curve.values)


def rank_curves(panel):
    """Returns the curves of a `Panel` from the best to the worst, a list."""
    return sorted(
        panel.curves,
        key=lambda curve: _average(panel, curve),
        reverse=panel.higher_is_better,
    )


def _note(panel, curve):
    """Describes a curve in a few words."""
    parts = [f"mean {_average(panel, curve):.2f}"]
    if curve.minutes is not None:
        parts.append(f"{curve.minutes:.1f} min")
    parts.append(f"{curve.runs} run{'s' * (curve.runs != 1)}")
    return ", ".join(parts)


@functools.cache
def _bundle_library():
    """Returns the JavaScript that draws; making it takes seconds."""
    import vl_convert

    return vl_convert.javascript_bundle()
