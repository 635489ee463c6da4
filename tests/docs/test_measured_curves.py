"""The curves of the explorer are those of the committed reports."""

import json

import pytest

from docs import explorer, measured_curves
from keras_lengen.evaluation import wilson_interval
from tests.checkout import ROOT


@pytest.fixture(scope="module")
def panels():
    return {panel.task: panel for panel in measured_curves.make_panels()}


def test_the_curves_are_current(panels):
    text = explorer.CURVES.read_text()
    current = explorer.dump_panels(panels.values())
    assert text == current, "run python -m docs.build"
    assert explorer.dump_panels(explorer.load_panels(text)) == text


def test_a_curve_is_the_median_of_its_seeds(panels):
    path = ROOT / "benchmarks" / "results" / "published_tasks.json"
    rows = [
        row
        for row in json.loads(path.read_text())["rows"]
        if (row["task"], row["method"]) == ("needle", "RoPE")
    ]
    panel = panels["needle (newer tasks)"]
    (curve,) = (each for each in panel.curves if each.method == "RoPE")
    (floor,) = panel.floors
    assert [*floor.values] == pytest.approx([rows[0]["floor"]] * 2, abs=1e-3)
    assert (floor.lengths, panel.trained) == ([40, 1280], [(4, 20)])
    assert (len(rows), curve.runs) == (3, 3)
    for index, length in enumerate(curve.lengths):
        shares = sorted(row["accuracy_by_length"][str(length)] for row in rows)
        low, high = (wilson_interval(shares[n], 64)[n] for n in (0, -1))
        found = [part[index] for part in (curve.values, curve.low, curve.high)]
        assert found == pytest.approx([shares[1], low, high], abs=1e-3)


def test_measured_intervals_and_other_units(panels):
    text = panels["text"]
    assert (text.measure, text.is_share) == ("nats per byte", False)
    assert all(c.low[0] < c.values[0] < c.high[0] for c in text.curves)
    assert panels["images of digits"].length_labels[0] == "8x8"
