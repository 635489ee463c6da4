"""Which tasks and methods the pictures of comparisons show."""

from docs.result_pictures import choose_panels
from trainers.reports.chart import Curve, Panel


def make_panel(task, **scores):
    """Makes a panel of methods with a trained and an unseen length."""
    curves = [Curve(name, [1, 9], values) for name, values in scores.items()]
    return Panel(task, curves, trained=[(1, 2)])


def test_the_best_methods_and_baselines_of_learned_tasks():
    scores = {
        "RoPE": [1.0, 0.1],
        "NoPE": [1.0, 0.2],
        "ALiBi": [0.8, 0.5],
        "FIRE": [1.0, 0.4],
        "DAPE": [1.0, 0.3],
    }
    failed = make_panel("parity", RoPE=[0.89, 1.0], NoPE=[0.5, 0.5])
    learned, others = choose_panels(
        [make_panel("copy", **scores), failed], ("RoPE",)
    )
    assert others == [failed]
    (panel,) = learned
    shown = [curve.method for curve in panel.curves]
    assert shown == ["ALiBi", "FIRE", "DAPE", "RoPE"]
