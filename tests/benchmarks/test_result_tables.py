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
        ({"NoPE": make_runs(0.0), "RoPE": make_runs(0.9, trained=0.5)}, []),
        # The median of the seeds decides.
        ({"NoPE": make_runs(1.0, 0.2, 0.3), "RoPE": make_runs(0.4)}, ["RoPE"]),
    ],
)
def test_the_best_methods(methods, best):
    assert result_tables._list_best(methods, [5]) == best
