"""The section about kinds of examples."""

import json

import pytest

from tests.trainers.reports.toy_grid import make_row, read_runs, write_runs
from tests.trainers.toy import change
from trainers.reports.cells import make_cells
from trainers.reports.contents import make_blocks
from trainers.reports.kinds import make_kinds

KINDS = {"zeros": {"5": 0.5, "6": 1.0}, "runs": {"5": 1.0, "6": 0.25}}


@pytest.mark.parametrize(
    ("fields", "first", "second"),
    [
        ({}, ["50.0", "100.0"], ["100.0", "25.0"]),
        ({"seeds": 2}, ["25.0 (0.0)", "100.0"], ["100.0", "25.0"]),
        (
            {"seeds": 2, "unit": "", "higher_is_better": False},
            *(["0.250 (0.500)", "1.000"], ["1.000", "0.250"]),
        ),
    ],
)
def test_each_kind_has_a_row(tmp_path, fields, first, second):
    grid = make_row(**fields)
    runs = write_runs(tmp_path, grid, [0.5] * len(grid.runs))
    assert make_kinds(grid, make_cells(grid, runs)) == []
    paths = sorted(tmp_path.rglob("results.json"))
    for path, kinds in zip(paths, [KINDS, {"zeros": {"5": 0}}], strict=False):
        final = json.loads(path.read_text())["final"]
        named = {f"accuracy_{kind}_by_length": of for kind, of in kinds.items()}
        change(path, kinds=[*kinds], final={**final, **named})
    runs = read_runs(tmp_path, grid)
    blocks = make_kinds(grid, make_cells(grid, runs))
    heading, legend, caption, table = blocks
    assert heading.text == "Kinds of examples"
    assert caption.text == "even_pairs, RoPE:"
    assert legend.text.endswith(" In %.") == (grid.unit == "%")
    assert table.head == ("", "5", "6")
    rows = {name: [e.text for e in entries] for name, *entries in table.rows}
    assert rows == {"zeros": first, "runs": second}
    assert all(block in make_blocks(grid, runs, []) for block in blocks)
