"""The table of total differences, against a midpoint rule."""

import pytest

from tests.benchmarks.modules import load

benchmark = load("attention_sensitivity")

# Of 4,000 points, somewhat coarse for 500 tokens.
KNOWN = {
    (20, 2): (0.099, 0.017, 0.053),
    (20, 4): (0.118, 0.070, 0.004),
    (500, 2): (0.056, 0.025, 0.030),
    (500, 4): (0.063, 0.029, 0.013),
}


@pytest.mark.product
def test_near_the_known_numbers():
    rows = benchmark.make_rows()
    report = benchmark.format_report(rows)
    assert "| 20 | 40 | 0.099 | **0.017** | 0.053 |" in report
    # Those of our reading.
    found = {
        (row["train_length"], row["factor"]): row
        for row in rows
        if row["reading"] == rows[0]["reading"]
    }
    assert found.keys() == KNOWN.keys()
    for setting, numbers in KNOWN.items():
        columns = found[setting]["total_difference"]
        assert list(columns) == ["without", "sqrt", "beta"]
        assert list(columns.values()) == pytest.approx(numbers, abs=1.5e-3)
        best = {(20, 4): "beta", (500, 4): "beta"}.get(setting, "sqrt")
        assert found[setting]["best"] == best
