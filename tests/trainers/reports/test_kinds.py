import json

import pytest

from tests.trainers.reports.test_cells import read, write
from tests.trainers.reports.toy_grid import make_grid
from trainers.reports.blocks import Table
from trainers.reports.cells import make_cells
from trainers.reports.contents import make_blocks
from trainers.reports.kinds import make_kinds

KINDS = {"zeros": {"5": 0.5, "6": 1.0}, "runs": {"5": 1.0, "6": 0.25}}


def add_kinds(root, kinds):
    """Writes values of kinds into the results of the first runs below."""
    paths = sorted(root.rglob("results.json"))
    for path, of_run in zip(paths, kinds, strict=False):
        results = json.loads(path.read_text())
        results["kinds"] = [*of_run]
        for kind, by_length in of_run.items():
            results["final"][f"accuracy_{kind}_by_length"] = by_length
        path.write_text(json.dumps(results))


@pytest.mark.parametrize(
    ("seeds", "first"), [(1, ["50.0", "100.0"]), (2, ["25.0 (0.0)", "100.0"])]
)
def test_each_kind_has_a_row(tmp_path, seeds, first):
    grid = make_grid(seeds=seeds, rows=["even_pairs"], columns=["RoPE"])
    write(grid, tmp_path, [0.5] * seeds)
    add_kinds(tmp_path, [KINDS, {"zeros": {"5": 0.0}}])
    runs = read(grid, tmp_path)
    blocks = make_kinds(grid, make_cells(grid, runs))
    assert [block.text for block in blocks[:3]][::2] == [
        "Kinds of examples",
        "even_pairs, RoPE:",
    ]
    (table,) = (block for block in blocks if isinstance(block, Table))
    assert table.head == ("", "5", "6")
    rows = {name: [e.text for e in entries] for name, *entries in table.rows}
    assert rows == {"zeros": first, "runs": ["100.0", "25.0"]}
    assert all(block in make_blocks(grid, runs, []) for block in blocks)


def test_runs_without_kinds_have_no_section(tmp_path):
    grid = make_grid(seeds=1, rows=["even_pairs"], columns=["RoPE"])
    write(grid, tmp_path, [0.5])
    runs = read(grid, tmp_path)
    assert make_kinds(grid, make_cells(grid, runs)) == []
