import pytest

from datasets.tasks import TASKS
from docs import class_tables
from docs.examples import ENCODINGS, SAMPLERS


@pytest.mark.parametrize(
    ("table", "classes"),
    [("samplers", SAMPLERS), ("encodings", ENCODINGS), ("tasks", TASKS)],
)
def test_every_name_stands_in_its_table(table, classes):
    text = class_tables.TABLES[table]()
    assert [name for name in classes if f" `{name}`" not in text] == []


def test_rows_of_encodings():
    rows = class_tables.make_encodings().splitlines()
    cells = {row.split(" | ")[0]: row.split(" | ")[1:] for row in rows}
    assert cells["| `RoPE`"][1] == "`RandomizedRoPE` |"
    assert cells["| `RoPE`"][0].startswith(ENCODINGS["RoPE"].__doc__[:40])
    assert cells["| `NTKRoPE`"][1] == " |"
    assert "| `RandomizedRoPE`" not in cells


def test_a_full_stop_is_dropped_and_an_ellipsis_is_not():
    text = class_tables.make_samplers()
    assert ". |" not in text.replace("... |", "")
    assert "0, 1, 2, ... |" in text
