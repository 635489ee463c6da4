"""The table of total differences, against a loop of its own."""

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
