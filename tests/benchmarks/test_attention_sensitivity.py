"""The table of total differences, against a loop of its own."""

import itertools
import math

import pytest

from tests.benchmarks.modules import load

benchmark = load("attention_sensitivity")

SKEWS = {
    "without": lambda x: x,
    "sqrt": math.sqrt,
    # Of Beta(2, 5).
    "beta": lambda x: 1 - (1 - x) ** 5 * (1 + 5 * x),
}

# By a midpoint rule of 4,000 points, somewhat coarse for 500 tokens.
KNOWN = {
    (20, 2): (0.099, 0.017, 0.053),
    (20, 4): (0.118, 0.070, 0.004),
    (500, 2): (0.056, 0.025, 0.030),
    (500, 4): (0.063, 0.029, 0.013),
}


def midpoint_score(distance, points=1000):
    shares = ((point + 0.5) / points for point in range(points))
    return sum(math.cos(distance * 1e4**-share) for share in shares) / points


def sensitivities(positions):
    attention = [math.exp(midpoint_score(x)) for x in positions]
    return [after - before for before, after in itertools.pairwise(attention)]


@pytest.fixture(scope="module")
def rows():
    """Rows of our reading, by the trained length and the factor."""
    rows = benchmark.make_rows()
    assert "| 20 | 40 | 0.099 | **0.017** | 0.053 |" in (
        benchmark.format_report(rows)
    )
    first = [row for row in rows if row["reading"] == rows[0]["reading"]]
    return {(row["train_length"], row["factor"]): row for row in first}


@pytest.mark.product
def test_near_the_known_numbers(rows):
    assert rows.keys() == KNOWN.keys()
    for setting, numbers in KNOWN.items():
        columns = rows[setting]["total_difference"]
        assert list(columns) == list(SKEWS)
        assert list(columns.values()) == pytest.approx(numbers, abs=1.5e-3)
        best = {(20, 4): "beta", (500, 4): "beta"}.get(setting, "sqrt")
        assert rows[setting]["best"] == best


@pytest.mark.product
@pytest.mark.parametrize("factor", [2, 4])
def test_length_20_by_a_loop(rows, factor):
    test = sensitivities([j / factor for j in range(20 * factor)])
    for name, skew in SKEWS.items():
        train = sensitivities([20 * skew(j / 20) for j in range(20)])
        expected = sum(
            abs(train[-back] - test[-back])
            for back in range(1, benchmark.LENGTHS[20])
        )
        found = rows[20, factor]["total_difference"][name]
        assert found == pytest.approx(expected, abs=2e-4)
