"""Which methods of a comparison get further seeds, and which are marked."""

from tests.benchmarks.modules import load

comparison, result_tables = load("comparison"), load("result_tables")
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
    ).choose_more(rows)
    return {method for _, method in chosen}


def test_best_methods_and_baselines_get_further_seeds():
    scores = dict(zip(METHODS, (0.1, 0.9, 0.2, 0.8, 0.7), strict=True))
    assert choose(scores) == {"RoPE", "FIRE", "DAPE", "NoPE"}
    # None does where a run is missing, or all methods fail.
    assert choose(dict.fromkeys(METHODS[1:], 0.5)) == set()
    assert choose(dict.fromkeys(METHODS, 0.0)) == set()


def make_runs(*scores, trained=1.0):
    by_length = {"5": trained}
    return [{"score": s, "accuracy_by_length": by_length} for s in scores]


def test_the_best_methods():
    for methods, best in (
        # Those that learned, and round alike.
        (
            {
                "NoPE": make_runs(0.991),
                "RoPE": make_runs(0.994),
                "ALiBi": make_runs(0.97),
                "FIRE": make_runs(1.0, trained=0.89),
            },
            ["NoPE", "RoPE"],
        ),
        ({"NoPE": make_runs(0.0), "RoPE": make_runs(0.9, trained=0.5)}, []),
        # The median of the seeds decides.
        ({"NoPE": make_runs(1.0, 0.2, 0.3), "RoPE": make_runs(0.4)}, ["RoPE"]),
    ):
        assert result_tables._list_best(methods, [5]) == best
