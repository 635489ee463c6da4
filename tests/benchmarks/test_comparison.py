"""Which methods of a comparison are trained with further seeds."""

from tests.benchmarks.modules import load

comparison = load("comparison")
METHODS = ("NoPE", "RoPE", "ALiBi", "FIRE", "DAPE")


def choose(scores):
    rows = [
        {"task": "copy", "method": method, "score": score, "seed": 0}
        for method, score in scores.items()
    ]
    chosen = comparison.Comparison(
        name="compared",
        tasks={"copy": ("algorithmic", {})},
        methods={method: {"encoding": method} for method in METHODS},
        model={},
        trained=20,
        baselines=("NoPE",),
        seeds=(1, 2),
        ticks=(),
    ).choose_more(rows)
    return {method for _, method in chosen}


def test_best_methods_and_baselines_get_further_seeds():
    scores = dict(zip(METHODS, (0.1, 0.9, 0.2, 0.8, 0.7), strict=True))
    assert choose(scores) == {"RoPE", "FIRE", "DAPE", "NoPE"}


def test_no_method_gets_further_seeds():
    # A run is missing, or all methods fail.
    assert choose(dict.fromkeys(METHODS[1:], 0.5)) == set()
    assert choose(dict.fromkeys(METHODS, 0.0)) == set()
