from tests.trainers.reports.test_places import read, write
from tests.trainers.reports.toy_grid import make_grid
from trainers.reports.blocks import Entry, Table
from trainers.reports.contents import make_csv, make_table
from trainers.reports.places import make_places
from trainers.reports.text import make_text

LOSSES = {
    "score": "loss_by_length",
    "statistic": "min",
    "higher_is_better": False,
    "unit": "nats",
    "published": None,
    "lengths": (3, 6),
}


def test_the_columns_of_a_length_stand_together(tmp_path):
    grid = make_grid(seeds=1, rows=["even_pairs"], **LOSSES)
    write(grid, tmp_path, [0.5, 0.25])
    table = make_table(grid, make_places(grid, read(grid, tmp_path)))
    assert table.head == (
        *("", "RoPE, 3", "RandomizedRoPE, 3"),
        *("RoPE, 6", "RandomizedRoPE, 6"),
    )
    ((name, *entries),) = table.rows
    assert name == "even_pairs"
    assert [entry.text for entry in entries] == [
        *("1.000", "1.000", "0.600", "0.350"),
    ]
    assert [entry.best for entry in entries] == [True, True, False, True]


def test_one_column_is_named_by_its_lengths(tmp_path):
    grid = make_grid(seeds=1, rows=["even_pairs"], columns=["RoPE"], **LOSSES)
    write(grid, tmp_path, [None])
    places = make_places(grid, read(grid, tmp_path))
    assert make_table(grid, places).head == ("", "3", "6")
    lines = make_csv(grid, places).decode().splitlines()
    assert lines[1].startswith("even_pairs,RoPE,3,nats,min,,,missing,1,0,0,0,")


def test_a_length_that_was_not_measured(tmp_path):
    fields = {**LOSSES, "lengths": (3, 9)}
    grid = make_grid(seeds=1, rows=["even_pairs"], columns=["RoPE"], **fields)
    write(grid, tmp_path, [0.5])
    table = make_table(grid, make_places(grid, read(grid, tmp_path)))
    assert table.rows[0][2].text == "not measured"


def test_a_bar_does_not_end_an_entry():
    table = Table(("", "a|b"), [("c|d", Entry("1", published="2|3"))])
    assert make_text("title", [table]).splitlines()[2:] == [
        "|  | a\\|b |",
        "| --- | --- |",
        "| c\\|d | 1 (2\\|3) |",
    ]
