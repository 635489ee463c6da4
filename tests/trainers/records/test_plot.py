import math
import sys
import types

import pytest
from matplotlib.axes import Axes

from trainers.engine.problem import Metric
from trainers.records import plot as of_plots
from trainers.records.plot import describe_lengths, plot_results

PROBLEM = types.SimpleNamespace(
    metrics=(Metric("accuracy"),),
    title="reverse_string",
    trained_lengths=(1, 2, 3, 4, 5),
    longest_trained=5,
    floor_labels={"floor": "always a"},
    length_name="length",
    describe_length=str,
)


def make_results(final):
    return {
        "floor_by_length": {"1": 0.5, "10": 0.5},
        "final": {"accuracy_by_length": {"1": 1.0, "10": 0.5}, **final},
    }


@pytest.fixture
def drawn(monkeypatch):
    """Labels, styles and values of all curves that are drawn."""
    found = []
    plot = Axes.plot

    def remember(self, x, y, style, **keywords):
        found.append((keywords["label"], style, keywords["color"], x, y))
        return plot(self, x, y, style, **keywords)

    monkeypatch.setattr(Axes, "plot", remember)
    return found


BOUNDS = {
    "accuracy_low_by_length": {"1": 0.9, "10": 0.4},
    "accuracy_high_by_length": {"1": 1.0, "10": 0.6},
}


@pytest.fixture
def saved(monkeypatch):
    """The figures that are saved."""
    found = []
    save = of_plots.save_figure
    monkeypatch.setattr(
        of_plots,
        "save_figure",
        lambda plot, file: found.append(plot) or save(plot, file),
    )
    return found


def train_on(*lengths):
    changed = {"trained_lengths": lengths, "longest_trained": lengths[-1]}
    return types.SimpleNamespace(**{**vars(PROBLEM), **changed})


@pytest.mark.parametrize(
    ("trained", "shaded", "text"),
    [
        ((1, 2, 3), [(1, 3)], "lengths 1-3"),
        ((4, 5, 6), [(4, 6)], "lengths 4-6"),
        ((8,), [(8, 8)], "length 8"),
        ((1, 2, 4, 8), [(1, 2), (4, 4), (8, 8)], "lengths 1-2, 4, 8"),
        (
            (1, 3, 5, 7, 9),
            [(n, n) for n in (1, 3, 5, 7, 9)],
            "lengths from 1 to 9",
        ),
    ],
)
def test_trained_lengths_alone_are_shaded(
    trained, shaded, text, tmp_path, saved
):
    problem = train_on(*trained)
    plot_results(tmp_path, {"RoPE": make_results({})}, problem)
    (axes,) = saved[0].axes
    found = [
        (patch.get_x(), patch.get_x() + patch.get_width())
        for patch in axes.patches
    ]
    assert found == shaded
    assert describe_lengths(problem) == text
    assert axes.get_title() == f"reverse_string: trained on {text}"


def test_a_metric_with_two_units_has_two_axes(tmp_path, saved):
    problem = train_on(1, 2)
    problem.metrics = (
        Metric("accuracy", "nats", second_unit=("bits", 1 / math.log(2))),
    )
    plot_results(tmp_path, {"RoPE": make_results({})}, problem)
    (axes,) = saved[0].axes
    (second,) = axes.child_axes
    assert axes.get_ylabel() == "accuracy (nats)"
    assert second.get_ylabel() == "bits"
    ratios = [
        bits / nats
        for bits, nats in zip(second.get_ylim(), axes.get_ylim(), strict=True)
    ]
    assert ratios == pytest.approx([1 / math.log(2)] * 2)
    legend = axes.get_legend().get_window_extent()
    assert legend.x0 > second.get_tightbbox().x1


def test_trained_lengths_fill_more_than_a_tenth_of_the_axis(tmp_path, saved):
    curve = {str(n): 1.0 for n in (1, 10, 20, 50, 100, 200, 500)}
    result = {"floor_by_length": curve, "final": {"accuracy_by_length": curve}}
    plot_results(tmp_path, {"RoPE": result}, train_on(*range(1, 11)))
    (axes,) = saved[0].axes
    assert axes.get_xscale() == "log"
    low, high = axes.get_xlim()
    ticks = [
        text.get_text()
        for place, text in zip(
            axes.get_xticks(), axes.get_xticklabels(), strict=True
        )
        if low <= place <= high
    ]
    assert ticks == ["1", "2", "5", "10", "20", "50", "100", "200", "500"]


def test_a_plot_is_written(tmp_path, drawn):
    plot_results(tmp_path, {"RoPE": make_results({})}, PROBLEM)
    path = tmp_path / "length_generalization.png"
    assert path.read_bytes().startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == [path]
    assert [(row[0], row[4]) for row in drawn] == [
        ("RoPE", [1.0, 0.5]),
        ("always a", [0.5, 0.5]),
    ]


def test_positions_have_a_plot_of_their_own(tmp_path, drawn):
    measured = make_results(
        {
            **BOUNDS,
            "accuracy_by_position": {"10": {"0": 1.0, "5": 0.2}},
            "unseen_positions_by_length": {"10": 0.5},
            "unseen_distances_by_length": {"10": 0.3},
        }
    )
    results = {"RoPE": measured, "NoPE": make_results({})}
    plot_results(tmp_path / "plot.png", results, PROBLEM)
    assert {path.name for path in tmp_path.iterdir()} == {
        "plot.png",
        "plot_positions.png",
    }
    curves = {row[0]: (row[3], row[4]) for row in drawn}
    assert curves["RoPE, length 10"] == ([0, 5], [1.0, 0.2])
    assert curves["RoPE, distances"] == ([10], [0.3])


def test_no_plot_without_matplotlib(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    plot_results(tmp_path, {"RoPE": make_results({})}, PROBLEM)
    assert "matplotlib is not installed" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
