"""Curves of the runs of a table."""

import pytest

from tests.trainers.reports.toy_grid import (
    make_row,
    read_runs,
    write_run,
    write_runs,
)
from trainers.reports import cells
from trainers.reports.cells import make_cells
from trainers.reports.curves import draw_curves
from trainers.reports.published import PublishedNumber

BOTH = ["RoPE", "RandomizedRoPE"]


def read_lines(axes):
    """Returns curves by label, as dicts from lengths to values."""
    return {
        line.get_label(): dict(zip(*line.get_data(), strict=True))
        for line in axes.lines
    }


def find_bands(axes):
    """Returns the corners of each band; entries of the legend have none."""
    return [
        {(round(x), round(y, 3)) for x, y in band.get_paths()[0].vertices}
        for band in axes.collections
        if band.get_paths()
    ]


def draw(path, grid, scores):
    return draw_curves(grid, make_cells(grid, write_runs(path, grid, scores)))


def test_the_curve_of_the_best_run(tmp_path, figures):
    (picture,) = draw(tmp_path, make_row(BOTH, seeds=2), [0.4, 0.6, 0.8, None])
    assert picture.name == "algorithmic-even_pairs.png"
    assert picture.text == "even_pairs: accuracy at each length"
    assert picture.content.startswith(b"\x89PNG")
    axes = figures[0].axes[0]
    lines = read_lines(axes)
    assert lines["RoPE"] == pytest.approx({3: 1, 5: 0.6, 6: 0.7})
    assert lines["RandomizedRoPE"] == pytest.approx({3: 1, 5: 0.8, 6: 0.9})
    assert lines["tokens without positions"] == {3: 0.5, 5: 0.5, 6: 0.5}
    assert lines["positions without tokens"] == {3: 0.5, 5: 0.5, 6: 0.3}
    # From the lowest to the highest run of the only encoding with two.
    (corners,) = find_bands(axes)
    assert corners == {(3, 1), (5, 0.4), (5, 0.6), (6, 0.5), (6, 0.7)}
    # One color for both forms, the plain one dashed.
    plain, randomized = axes.lines[:2]
    assert (plain.get_linestyle(), randomized.get_linestyle()) == ("--", "-")
    assert plain.get_color() == randomized.get_color()


def test_what_the_picture_says_of_its_runs(tmp_path, figures):
    grid = make_row(BOTH, seeds=2)
    draw(tmp_path, grid, [0.4, 0.6, 0.8, None])
    # The last run is trained on other lengths.
    write_run(tmp_path, grid.runs[-1], {3: 1, 5: 0.7}, train_length="1-2")
    draw_curves(grid, make_cells(grid, read_runs(tmp_path, grid)))
    first, second = (figure.axes[0] for figure in figures)
    assert first.get_title() == "even_pairs: best runs, trained on lengths 1-3"
    assert second.get_title() == "even_pairs: best runs"
    assert (len(first.patches), len(second.patches)) == (1, 0)
    legends = [
        [text.get_text() for text in axes.get_legend().get_texts()]
        for axes in (first, second)
    ]
    assert ["trained lengths" in legend for legend in legends] == [True, False]
    assert all("lowest to highest run" in legend for legend in legends)


def test_the_mean_curve_and_published_points(tmp_path, figures, monkeypatch):
    published = PublishedNumber("80.0")
    monkeypatch.setattr(cells, "_find", lambda *_: published)
    by_length = {"score": "accuracy_by_length", "lengths": (5, 6)}
    grid = make_row(seeds=2, statistic="mean", **by_length)
    draw(tmp_path, grid, [0.4, 0.6])
    axes = figures[0].axes[0]
    lines = read_lines(axes)
    assert lines["RoPE"] == pytest.approx({3: 1, 5: 0.5, 6: 0.6})
    assert lines["published"] == pytest.approx({5: 0.8, 6: 0.8})
    assert axes.get_title().startswith("even_pairs: means")
    # The interval of Student's t, with one degree of freedom.
    (corners,) = find_bands(axes)
    half = 12.706 * 0.1
    assert {(5, round(0.5 - half, 3)), (5, round(0.5 + half, 3))} <= corners


def test_no_picture_of_nothing(tmp_path):
    assert draw(tmp_path, make_row(seeds=2), [None, ...]) == []
