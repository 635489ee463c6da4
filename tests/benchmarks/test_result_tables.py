"""How the methods of a comparison are marked in its table."""

import pytest

from tests.benchmarks.modules import load

result_tables = load("result_tables")


def make_runs(*scores, trained=1.0):
    by_length = {"5": trained}
    return [{"score": s, "accuracy_by_length": by_length} for s in scores]


@pytest.mark.parametrize(
    ("methods", "best"),
    [
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
        (
            {"NoPE": make_runs(0.0), "RoPE": make_runs(0.9, trained=0.5)},
            [],
        ),
        # The median of the seeds decides.
        ({"NoPE": make_runs(1.0, 0.2, 0.3), "RoPE": make_runs(0.4)}, ["RoPE"]),
    ],
)
def test_the_best_methods(methods, best):
    assert result_tables._list_best(methods, [5]) == best


@pytest.mark.parametrize(
    ("runs", "is_best", "text"),
    [
        (make_runs(0.5), True, "**0.50**"),
        (make_runs(0.5, trained=0.8), False, "0.50 \\*"),
        (make_runs(0.1, 0.7, 0.3), False, "0.30 (0.10-0.70)"),
        (None, False, ""),
    ],
)
def test_scores_are_bold_and_starred(runs, is_best, text):
    assert result_tables._format_scores(runs, is_best, [5]) == text
