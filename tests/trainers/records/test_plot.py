import builtins
import types

import pytest
from matplotlib.axes import Axes

from trainers.engine.problem import Metric
from trainers.records.plot import plot_results

PROBLEM = types.SimpleNamespace(
    metrics=(Metric("accuracy"),),
    title="reverse_string",
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


def test_lengths_with_names(tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr(
        Axes, "set_xticks", lambda self, *given, **_: found.append(given)
    )
    problem = types.SimpleNamespace(**vars(PROBLEM))
    problem.describe_length = lambda length: f"{length}x{length}"
    plot_results(tmp_path, {"RoPE": make_results({})}, problem)
    assert found == [([1, 10], ["1x1", "10x10"])]


def test_a_plot_is_written(tmp_path, drawn):
    plot_results(tmp_path, {"RoPE": make_results({})}, PROBLEM)
    path = tmp_path / "length_generalization.png"
    assert path.read_bytes().startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == [path]
    assert [(row[0], row[4]) for row in drawn] == [
        ("RoPE", [1.0, 0.5]),
        ("always a", [0.5, 0.5]),
    ]


def test_many_curves_are_all_drawn_and_differ(tmp_path, drawn):
    results = {f"run {number}": make_results({}) for number in range(20)}
    plot_results(tmp_path / "plot.png", results, PROBLEM)
    assert len({row[1:3] for row in drawn}) == len(drawn) == 21


def test_positions_have_a_plot_of_their_own(tmp_path, drawn):
    measured = make_results(
        {
            "accuracy_low_by_length": {"1": 0.9, "10": 0.4},
            "accuracy_high_by_length": {"1": 1.0, "10": 0.6},
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
    real_import = builtins.__import__

    def without(name, *arguments, **keywords):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    plot_results(tmp_path, {"RoPE": make_results({})}, PROBLEM)
    assert "matplotlib is not installed" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_a_long_label_leaves_room_for_the_curves(tmp_path, monkeypatch):
    found = []
    legend = Axes.legend
    monkeypatch.setattr(
        Axes,
        "legend",
        lambda *given, **keywords: (
            found.extend(given[2]) or legend(*given, **keywords)
        ),
    )
    label = "encoding, of a long name, " * 9
    plot_results(tmp_path, {label: make_results({})}, PROBLEM)
    lines = found[0].splitlines()
    assert max(map(len, lines)) <= 50
    assert " ".join(lines).split() == label.split()
