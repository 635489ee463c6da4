import builtins

from matplotlib.axes import Axes

from trainers.engine.problem import Metric
from trainers.records.plot import plot_lengths

ARGUMENTS = {
    "metric": Metric("accuracy"),
    "curves": {"RoPE": {"1": 1.0, "10": 0.5}, "ALiBi": {"1": 0.9, "10": 0.8}},
    "title": "reverse_string",
    "longest_trained": 5,
    "floors": {"floor": {"1": 0.5, "10": 0.5}},
}


def test_a_plot_is_written(tmp_path):
    path = plot_lengths(tmp_path / "plot.png", **ARGUMENTS)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == [path]


def test_many_curves_are_all_drawn_and_differ(tmp_path, monkeypatch):
    drawn = []
    plot = Axes.plot

    def remember(self, *arguments, **keywords):
        drawn.append((arguments[2], keywords["color"]))
        return plot(self, *arguments, **keywords)

    monkeypatch.setattr(Axes, "plot", remember)
    curves = {f"run {number}": {"1": 1.0, "10": 0.5} for number in range(20)}
    plot_lengths(tmp_path / "plot.png", **{**ARGUMENTS, "curves": curves})
    assert len(set(drawn)) == len(drawn) == 21


def test_no_plot_without_matplotlib(tmp_path, monkeypatch):
    real_import = builtins.__import__

    def without(name, *arguments, **keywords):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    assert plot_lengths(tmp_path / "plot.png", **ARGUMENTS) is None
