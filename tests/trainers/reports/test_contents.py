import csv
import dataclasses
import io

import pytest

from tests.trainers.reports.test_cells import read, write
from tests.trainers.reports.toy_grid import make_grid
from trainers.reports.blocks import (
    Entry,
    Heading,
    Paragraph,
    Picture,
    Table,
)
from trainers.reports.cells import make_cells
from trainers.reports.contents import make_blocks, make_csv, make_table
from trainers.reports.page import make_page
from trainers.reports.reading import report_run
from trainers.reports.text import make_text

LOSSES = {
    "score": "loss_by_length",
    "statistic": "min",
    "higher_is_better": False,
    "unit": "nats",
    "published": (),
    "lengths": (3, 6),
}


def test_the_columns_of_a_length_stand_together(tmp_path):
    grid = make_grid(seeds=1, rows=["even_pairs"], **LOSSES)
    write(grid, tmp_path, [0.5, 0.25])
    table = make_table(grid, make_cells(grid, read(grid, tmp_path)))
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
    runs = read(grid, tmp_path)
    assert make_table(grid, make_cells(grid, runs)).head == ("", "3", "6")
    lines = make_csv(grid, runs).decode().splitlines()
    assert lines[1].startswith(
        "even_pairs,RoPE,3,nats,min,,,,,,0,missing,1,0,0,0,"
    )


def test_a_length_that_was_not_measured(tmp_path):
    fields = {**LOSSES, "lengths": (3, 9)}
    grid = make_grid(seeds=1, rows=["even_pairs"], columns=["RoPE"], **fields)
    write(grid, tmp_path, [0.5])
    table = make_table(grid, make_cells(grid, read(grid, tmp_path)))
    assert table.rows[0][2].text == "not measured"


def test_a_bar_does_not_end_an_entry():
    table = Table(("", "a|b"), [("c|d", Entry("1", published="2|3"))])
    assert make_text("title", [table]).splitlines()[2:] == [
        "|  | a\\|b |",
        "| --- | --- |",
        "| c\\|d | 1 (2\\|3) |",
    ]


def test_markup_of_names_is_text_in_every_format():
    name = "<b>[x](y)|*z*\n_a_"
    blocks = [
        Heading(name),
        Paragraph(name),
        Picture("p.png", name, b""),
        Table(("", name), [(name, Entry(name, published=name))]),
    ]
    shown = r"\<b>\[x\](y)|\*z\* \_a\_"
    cell = shown.replace("|", r"\|")
    assert make_text(name, blocks).splitlines() == [
        *(f"# {shown}", "", f"## {shown}", "", shown, ""),
        *(f"![{shown}](p.png)", "", f"|  | {cell} |", "| --- | --- |"),
        f"| {cell} | {cell} ({cell}) |",
    ]
    page = make_page(name, blocks).decode()
    assert "<b>" not in page and "&lt;b&gt;[x](y)|*z*" in page


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("=1+1", "'=1+1"),
        ("+x", "'+x"),
        ("-x", "'-x"),
        ("@SUM(1)", "'@SUM(1)"),
        ("\t=1", "'\t=1"),
        ("-1.5e-3", "-1.5e-3"),
        ("a\nb\r\nc", "a b c"),
        ('a,"b"', 'a,"b"'),
        ("RoPE", "RoPE"),
    ],
)
def test_names_in_csv_are_no_formulas_and_stand_on_one_line(name, shown):
    grid = make_grid(seeds=1, rows=["even_pairs"], columns=["RoPE"])
    run = dataclasses.replace(grid.runs[0], row=name, column=name)
    grid = dataclasses.replace(grid, runs=(run,), published=())
    text = make_csv(grid, [report_run(run, None, grid)]).decode()
    assert len(text.splitlines()) == 2
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["row"], row["column"]) == (shown, shown)


def list_texts(blocks):
    return [block.text for block in blocks if isinstance(block, Paragraph)]


def test_a_published_number_of_another_table_is_marked(tmp_path):
    files = ("ruoss_2023_table_1", "confounding_table_b1")
    grid = make_grid(
        seeds=1,
        rows=["even_pairs"],
        columns=["RoPE", "ALiBi", "LogKERPLE"],
        published=files,
    )
    write(grid, tmp_path, [0.5, None, 0.5])
    blocks = make_blocks(grid, read(grid, tmp_path), [])
    legend, notes = list_texts(blocks)[1:]
    assert "from Ruoss et al., 2023, Table 1, is in parentheses" in legend
    assert notes == (
        "† seeds: 1; published: 3 to 10. ¶ from Confounding effects, "
        "Table B.1. 1 of 3 entries have no result yet; none of them have begun."
    )
    table, settings = (block for block in blocks if isinstance(block, Table))
    text = make_text("", [table]).splitlines()[-1]
    assert text == (
        "| even_pairs | **55.0†** (51.0) | missing, 0 of 1 (67.3) | "
        "**55.0†** (**100.0¶**) | 50.0 | 40.0 |"
    )
    assert settings.head[1:] == (
        *("ours", "Ruoss et al., 2023, Table 1"),
        "Confounding effects, Table B.1",
    )
    rows = {name: [e.text for e in entries] for name, *entries in settings.rows}
    assert rows["seeds"] == ["1", "10", "3"]
    assert "parameters" not in rows


@pytest.mark.parametrize(
    ("published", "count"),
    [
        (("ruoss_2023_table_1",), 1),
        (("ruoss_2023_table_1", "ruoss_2023_table_4"), 2),
    ],
)
def test_one_run_has_a_mean_beside_a_published_one(tmp_path, published, count):
    grid = make_grid(seeds=1, rows=["even_pairs"], published=published)
    write(grid, tmp_path, [0.5, 0.7])
    blocks = make_blocks(grid, read(grid, tmp_path), [])
    # And that of the settings.
    assert sum(isinstance(block, Table) for block in blocks) == count + 1


def test_columns_and_doubts_of_published_numbers(tmp_path):
    grid = make_grid(
        rows=["binary_multiplication", "bucket_sort"],
        columns=["GeometricAttention"],
        published=("ruoss_2023_table_5",),
        only_published={
            "best of Table 1": "BestOfTable1",
            "best of Table 4": "BestOfTable4",
        },
    )
    runs = read(grid, tmp_path)
    blocks = make_blocks(grid, runs, [])
    maxima, means, settings = (b for b in blocks if isinstance(b, Table))
    assert maxima.head[1:] == (
        "GeometricAttention",
        "published: best of Table 1",
    )
    assert make_text("", [maxima]).splitlines()[4:] == [
        "| binary_multiplication | missing, 0 of 2 (**53.6**) | (50.1§) |",
        "| bucket_sort | missing, 0 of 2 (78.3) | (**100.0**) |",
    ]
    assert means.head[2:] == ("published: best of Table 4",)
    notes = " ".join(list_texts(blocks))
    assert (
        "§ doubtful: binary_multiplication, best of Table 1: Table 1 has 52.2 "
        "(RelativeEncoding)."
    ) in notes
    assert "§ doubtful: bucket_sort, best of Table 4: Table 4 has" in notes
    assert "2 of 2 entries have no result yet; none" in notes
    assert settings.rows[0][1].text == "no result yet"
    assert len(make_csv(grid, runs).splitlines()) == 1 + 2 + 2 * 2
