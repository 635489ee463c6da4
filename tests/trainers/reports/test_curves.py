import pytest

from tests.trainers.reports.toy_grid import (
    make_row,
    read_runs,
    write_run,
    write_runs,
)
from tests.trainers.toy import change
from trainers.reports import cells
from trainers.reports.cells import make_cells
from trainers.reports.chart import Curve
from trainers.reports.curves import combine, estimate, make_panels
from trainers.reports.published import PublishedNumber

BOTH = ["RoPE", "RandomizedRoPE"]


def make_panel(path, grid):
    cells = make_cells(grid, read_runs(path, grid))
    (panel,) = make_panels(grid, cells).values()
    return panel


def test_the_curve_of_the_best_run(tmp_path):
    grid = make_row(BOTH, seeds=2)
    write_runs(tmp_path, grid, [0.4, 0.6, 0.8, None])
    panel = make_panel(tmp_path, grid)
    assert (panel.task, panel.measure) == ("even_pairs", "accuracy")
    assert panel.note == "best runs, trained on lengths 1-3"
    assert (panel.trained, panel.lengths) == ([(1, 3)], (3, 5, 6))
    best, single = panel.curves
    assert (best.method, best.runs) == ("RoPE", 2)
    assert best.values == pytest.approx([1, 0.6, 0.7])
    assert single.values == pytest.approx([1, 0.8, 0.9])
    assert single.minutes == pytest.approx(120 * 0.85)
    assert [(f.method, [*f.values]) for f in panel.floors] == [
        ("order-blind baseline", [0.5, 0.5, 0.5]),
        ("input-blind baseline", [0.5, 0.5, 0.3]),
    ]
    # The last run is trained on other lengths.
    write_run(tmp_path, grid.runs[-1], {3: 1, 5: 0.7}, train_length="1-2")
    panel = make_panel(tmp_path, grid)
    assert (panel.note, panel.trained) == ("best runs", ())


def test_the_mean_curve_and_published_points(tmp_path, monkeypatch):
    published = PublishedNumber("80.0")
    monkeypatch.setattr(cells, "_find", lambda *_: published)
    by_length = {"score": "accuracy_by_length", "lengths": (5, 6)}
    grid = make_row(seeds=2, statistic="mean", **by_length)
    write_runs(tmp_path, grid, [0.4, 0.6])
    panel = make_panel(tmp_path, grid)
    (curve,) = panel.curves
    assert curve.values == pytest.approx([1, 0.5, 0.6])
    assert curve.published == [None, 0.8, 0.8]
    assert panel.note.startswith("means")


def test_the_interval_of_a_run_is_measured_or_follows_from_its_examples(
    tmp_path,
):
    grid = make_row()
    write_runs(tmp_path, grid, [0.5])
    (path,) = tmp_path.rglob("results.json")
    examples = read_runs(tmp_path, grid)[0].config["evaluation_examples"]
    (curve,) = make_panel(tmp_path, grid).curves
    wanted = estimate({5: 0.5}, {}, {}, lambda _: examples)[5]
    assert (0.5, curve.low[1], curve.high[1]) == wanted
    final = {"accuracy_by_length": {"5": 0.5}, "score": 0.5, "step": 2}
    ends = {"low": 0.25, "high": 0.75}
    more = {f"accuracy_{end}_by_length": {"5": v} for end, v in ends.items()}
    change(path, final={**final, **more})
    (curve,) = make_panel(tmp_path, grid).curves
    assert (curve.low, curve.high) == ([0.25], [0.75])


def test_intervals_of_runs_are_joined():
    runs = [
        estimate({2: 1.0, 4: 0.5}, {2: 0.9}, {2: 1.0}, lambda _: 0),
        estimate({2: 0.8, 4: 0.6}, {2: 0.7}, {2: 0.85}, {4: 100}.get),
    ]
    assert combine("RoPE", runs, {4: 0.5, 2: 0.9}) == Curve(
        "RoPE", [2, 4], [0.9, 0.5], [0.7, None], [1.0, None], runs=2
    )


def test_no_curves_of_nothing(tmp_path):
    grid = make_row(seeds=2)
    cells = make_cells(grid, write_runs(tmp_path, grid, [None, ...]))
    assert make_panels(grid, cells) == {}
