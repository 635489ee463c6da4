"""How the methods of a comparison are marked in its table."""

from tests.benchmarks.modules import load

result_tables = load("result_tables")


def make_runs(score, trained=1.0):
    return [{"score": score, "accuracy_by_length": {"5": trained}}]


def test_the_best_are_those_that_learned_and_round_alike():
    methods = {
        "NoPE": make_runs(0.991),
        "RoPE": make_runs(0.994),
        "ALiBi": make_runs(0.97),
        "FIRE": make_runs(1.0, trained=0.89),
    }
    assert result_tables._list_best(methods, [5]) == ["NoPE", "RoPE"]
    failing = {"NoPE": make_runs(0.0), "RoPE": make_runs(0.9, trained=0.5)}
    assert result_tables._list_best(failing, [5]) == []


def test_a_median_of_the_seeds_decides():
    seeds = [*make_runs(1.0), *make_runs(0.2), *make_runs(0.3)]
    methods = {"NoPE": seeds, "RoPE": make_runs(0.4)}
    assert result_tables._list_best(methods, [5]) == ["RoPE"]


def test_scores_are_bold_and_starred():
    form = result_tables._format_scores
    assert form(make_runs(0.5), True, [5]) == "**0.50**"
    assert form(make_runs(0.5, trained=0.8), False, [5]) == "0.50 \\*"
    several = [*make_runs(0.1), *make_runs(0.7), *make_runs(0.3)]
    assert form(several, False, [5]) == "0.30 (0.10-0.70)"
    assert form(None, False, [5]) == ""
