import pytest
from matplotlib.axes import Axes

from tests.trainers.reports.test_cells import read, write
from tests.trainers.reports.toy_grid import make_grid, write_run
from trainers.reports import cells as module
from trainers.reports import curves as of_curves
from trainers.reports.cells import make_cells
from trainers.reports.curves import draw_curves
from trainers.reports.published import PublishedNumber


@pytest.fixture
def drawn(monkeypatch):
    """Curves by label, and bands, that were drawn."""
    curves, bands = {}, []
    plot, fill = Axes.plot, Axes.fill_between

    def remember_plot(self, x, y, *args, **kwargs):
        curves[kwargs["label"]] = dict(zip(x, y, strict=True))
        curves[kwargs["label"], "style"] = (*args, kwargs["color"])
        return plot(self, x, y, *args, **kwargs)

    def remember_fill(self, x, low, high, **kwargs):
        bands.append((low, high))
        return fill(self, x, low, high, **kwargs)

    monkeypatch.setattr(Axes, "plot", remember_plot)
    monkeypatch.setattr(Axes, "fill_between", remember_fill)
    return curves, bands


def test_the_curve_of_the_best_run(tmp_path, drawn):
    grid = make_grid(rows=["even_pairs"])
    write(grid, tmp_path, [0.4, 0.6, 0.8, None])
    (picture,) = draw_curves(grid, make_cells(grid, read(grid, tmp_path)))
    assert picture.name == "algorithmic-even_pairs.png"
    assert picture.content.startswith(b"\x89PNG")
    curves, bands = drawn
    assert curves["RoPE"] == pytest.approx({3: 1, 5: 0.6, 6: 0.7})
    assert curves["RandomizedRoPE"] == pytest.approx({3: 1, 5: 0.8, 6: 0.9})
    assert curves["tokens without positions"] == {3: 0.5, 5: 0.5, 6: 0.5}
    assert bands[0][0] == pytest.approx([1, 0.4, 0.5])
    assert bands[0][1] == pytest.approx([1, 0.6, 0.7])
    # One color for both forms, the plain one dashed.
    (dashed, color), (solid, same) = (
        curves[name, "style"] for name in ("RoPE", "RandomizedRoPE")
    )
    assert (dashed, solid) == ("--", "-")
    assert color == same


def test_what_the_picture_says_of_its_runs(tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr(
        of_curves, "save_figure", lambda plot, file: found.append(plot)
    )
    grid = make_grid(rows=["even_pairs"])
    write(grid, tmp_path, [0.4, 0.6, 0.8, None])
    draw_curves(grid, make_cells(grid, read(grid, tmp_path)))
    # The last run is trained on other lengths.
    write_run(tmp_path, grid.runs[-1], {3: 1, 5: 0.7}, train_length="1-2")
    draw_curves(grid, make_cells(grid, read(grid, tmp_path)))
    (first,), (second,) = (plot.axes for plot in found)
    assert first.get_title() == "even_pairs: best runs, trained on lengths 1-3"
    assert second.get_title() == "even_pairs: best runs"
    assert len(first.patches) == 1
    assert not second.patches
    legends = [
        [text.get_text() for text in axes.get_legend().get_texts()]
        for axes in (first, second)
    ]
    assert "trained lengths" in legends[0]
    assert "trained lengths" not in legends[1]
    assert all("lowest to highest run" in legend for legend in legends)


def test_the_mean_curve_and_published_points(tmp_path, drawn, monkeypatch):
    grid = make_grid(
        columns=["RoPE"],
        statistic="mean",
        score="accuracy_by_length",
        lengths=(5, 6),
    )
    published = PublishedNumber("80.0")
    monkeypatch.setattr(module, "_find", lambda *_: published)
    write(grid, tmp_path, [0.4, 0.6, None, None])
    (picture,) = draw_curves(grid, make_cells(grid, read(grid, tmp_path)))
    assert picture.text == "even_pairs: accuracy at each length"
    curves, _ = drawn
    assert curves["RoPE"] == pytest.approx({3: 1, 5: 0.5, 6: 0.6})
    assert curves["published"] == pytest.approx({5: 0.8, 6: 0.8})


def test_no_picture_of_nothing(tmp_path):
    grid = make_grid()
    assert draw_curves(grid, make_cells(grid, read(grid, tmp_path))) == []
