import sys

import pytest

from tests.trainers.toy import stand_in_problem
from trainers.records.plot import describe_lengths, plot_results
from trainers.records.styles import GRAY, choose_styles


def make_problem(*lengths):
    return stand_in_problem(*lengths, floor_labels={"floor": "always a"})


def make_results(final):
    return {
        "floor_by_length": {"1": 0.5, "10": 0.5},
        "final": {"accuracy_by_length": {"10": 0.5, "1": 1.0}, **final},
    }


def find_curves(axes):
    return {
        line.get_label(): [*map(list, line.get_data())] for line in axes.lines
    }


@pytest.mark.parametrize(
    ("trained", "shaded", "text"),
    [
        ((4, 5, 6), [(4, 6)], "lengths 4-6"),
        ((8,), [(8, 8)], "length 8"),
        ((1, 2, 4, 8), [(1, 2), (4, 4), (8, 8)], "lengths 1-2, 4, 8"),
        (range(1, 10, 2), [(n, n) for n in range(1, 10, 2)], "from 1 to 9"),
    ],
)
def test_trained_lengths_alone_are_shaded(
    trained, shaded, text, tmp_path, figures
):
    problem = make_problem(*trained)
    plot_results(tmp_path, {"RoPE": make_results({})}, problem)
    (axes,) = figures[0].axes
    found = [
        (patch.get_x(), patch.get_x() + patch.get_width())
        for patch in axes.patches
    ]
    assert found == shaded
    assert text in describe_lengths(problem)


def test_positions_have_a_plot_of_their_own(tmp_path, figures):
    measured = make_results(
        {
            "accuracy_low_by_length": {"10": 0.4, "1": 0.9},
            "accuracy_high_by_length": {"10": 0.6, "1": 1.0},
            "accuracy_by_position": {"10": {"5": 0.2, "0": 1.0}},
            "unseen_distances_by_length": {"10": 0.3},
        }
    )
    results = {"RoPE": measured, "NoPE": make_results({})}
    plot_results(tmp_path / "plot.png", results, make_problem(1, 2))
    for name in ("plot.png", "plot_positions.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    (lengths,) = figures[0].axes
    curve = [[1, 10], [1.0, 0.5]]
    floor = [[1, 10], [0.5, 0.5]]
    expected = {"RoPE": curve, "NoPE": curve, "always a": floor}
    assert find_curves(lengths) == expected
    styles = [
        (line.get_color(), line.get_linestyle(), line.get_marker())
        for line in lengths.lines
    ]
    # A plain form is dashed, and so is a floor, in gray and without markers.
    red, sky = (choose_styles([n])[n].color for n in ("RoPE", "NoPE"))
    assert styles == [(red, "--", "o"), (sky, "-", "o"), (GRAY, "--", "")]
    corners = lengths.collections[0].get_paths()[0].vertices
    assert {(1, 0.9), (10, 0.4), (10, 0.6)} <= {*map(tuple, corners)}
    positions, unseen = figures[1].axes
    assert find_curves(positions)["RoPE, length 10"] == [[0, 5], [1.0, 0.2]]
    assert find_curves(unseen) == {"RoPE, distances": [[10], [0.3]]}


def test_no_plot_without_matplotlib(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    plot_results(tmp_path, {"RoPE": make_results({})}, make_problem(1))
    assert "matplotlib is not installed" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
