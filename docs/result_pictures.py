"""Draws the pictures of the pages of results from the committed reports."""

import dataclasses
import io
import pathlib

from benchmarks.result_tables import LEARNED
from docs.measured_curves import ABLATION
from trainers.reports.chart import draw_panels
from trainers.reports.explorer import rank_curves

IMAGES = pathlib.Path(__file__).with_name("images")

SINGLE = {
    "demonstration": "even_pairs (demonstration)",
    "language": "text",
    "addition": "addition (up to 500 digits)",
}
"""Panels that are pictures, by the names of their files."""

COMPARED = {
    "frontier": ("28 methods", ("RoPE", "RandomizedRoPE")),
    "published_tasks": ("newer tasks", ("RoPE", "NoPE")),
}
"""What names the panels of a comparison, and its baselines."""

BEST = 3
"""Number of methods beside the baselines that a panel shows."""


def main(panels):
    """Writes the pictures of `docs.measured_curves.make_panels`."""
    named = {panel.task: panel for panel in panels}
    for name, task in SINGLE.items():
        curves = [
            curve
            for curve in named[task].curves
            if not curve.method.startswith(ABLATION)
        ]
        panel = dataclasses.replace(named[task], curves=curves)
        _write(name, draw_panels([panel]))
    for name, (label, baselines) in COMPARED.items():
        ending = f" ({label})"
        of_name = [panel for panel in panels if panel.task.endswith(ending)]
        learned, others = choose_panels(of_name, baselines)
        note = "not shown, as no method learned them: " + ", ".join(
            panel.task.removesuffix(ending) for panel in others
        )
        content = draw_panels(
            [
                dataclasses.replace(each, task=each.task.removesuffix(ending))
                for each in learned
            ],
            columns=3,
            size=(300, 220),
            title=f"Best {BEST} methods and baselines: median and intervals",
            note=note if others else "",
        )
        _write(name, content)


def _write(name, content):
    """Writes a picture with few colors, which keeps its file small."""
    from PIL import Image

    image = Image.open(io.BytesIO(content)).convert("RGB")
    image = image.quantize(128, dither=Image.Dither.NONE)
    image.save(IMAGES / f"{name}.png", optimize=True)


def choose_panels(panels, baselines):
    """Returns panels with the best methods and baselines, and all others.

    Args:
        panels: List of `Panel`s.
        baselines: Methods that are shown in any case.

    Returns:
        Two lists of `Panel`s: those that a method learned, with the curves to
        show, and those that none learned at the trained lengths.
    """
    learned, others = [], []
    for panel in panels:
        if not any(_has_learned(panel, curve) for curve in panel.curves):
            others.append(panel)
            continue
        ranked = rank_curves(panel)
        curves = [
            curve
            for number, curve in enumerate(ranked)
            if number < BEST or curve.method in baselines
        ]
        learned.append(dataclasses.replace(panel, curves=curves))
    return learned, others


def _has_learned(panel, curve):
    """Whether the mean at the trained lengths is that of a learned task."""
    trained = [
        value
        for length, value in zip(curve.lengths, curve.values, strict=True)
        if length <= panel.longest_trained
    ]
    return sum(trained) >= LEARNED * len(trained)
