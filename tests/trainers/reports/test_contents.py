"""Tables, footnotes and settings of a report, in each format."""

import csv
import dataclasses
import io
import json
import re

import pytest

from tests.trainers.reports.toy_grid import make_row, read_runs, write_runs
from tests.trainers.toy import change
from trainers.reports import explorer
from trainers.reports.blocks import (
    Curves,
    Entry,
    Heading,
    Paragraph,
    Picture,
    Table,
)
from trainers.reports.cells import make_cells
from trainers.reports.chart import Curve, Panel
from trainers.reports.contents import make_blocks, make_csv, make_table
from trainers.reports.kinds import make_kinds
from trainers.reports.page import make_page
from trainers.reports.reading import report_run
from trainers.reports.text import make_text

LOSSES = {
    "score": "loss_by_length",
    "statistic": "min",
    "higher_is_better": False,
    "unit": "nats",
}


@pytest.mark.parametrize(
    ("columns", "lengths", "scores", "head", "texts"),
    [
        (
            *(["RoPE", "ALiBi"], (3, 6), [0.5, 0.25]),
            ("RoPE, 3", "ALiBi, 3", "RoPE, 6", "ALiBi, 6"),
            ["**1.000**", "**1.000**", "0.600", "**0.350**"],
        ),
        (["RoPE"], (3, 9), [0.5], ("3", "9"), ["**1.000**", "not measured"]),
        (["RoPE"], (3, 6), [None], ("3", "6"), ["missing, 0 of 1"] * 2),
    ],
)
def test_the_columns_of_a_length_stand_together(
    tmp_path, columns, lengths, scores, head, texts
):
    grid = make_row(columns, **LOSSES, lengths=lengths)
    runs = write_runs(tmp_path, grid, scores)
    table = make_table(grid, make_cells(grid, runs))
    assert table.head == ("", *head)
    line = make_text("", [table]).splitlines()[-1]
    assert line == f"| even_pairs | {' | '.join(texts)} |"
    _, first, *_ = make_csv(grid, runs).decode().splitlines()
    assert first.startswith(
        "even_pairs,RoPE,3,nats,min,,,,,,0,missing,1,0,0,0,"
        if scores == [None]
        else "even_pairs,RoPE,3,nats,min,1,1,1,1,,1,complete,1,1,1,1,"
    )


def test_markup_of_names_is_text_in_every_format(monkeypatch):
    name = "<b>[x](y)|*z*\n_a_"
    picture = Picture("p.png", name, b"")
    blocks = [
        *(Heading(name), Paragraph(name)),
        Curves([Panel(name, [Curve(name, [1, 2], [0, 1])])], [picture]),
        Table(("", name), [(name, Entry(name, published=name))]),
    ]
    shown = r"\<b>\[x\](y)|\*z\* \_a\_"
    # A bar does not end an entry of a table.
    cell = shown.replace("|", r"\|")
    assert make_text(name, blocks).splitlines() == [
        *(f"# {shown}", "", f"## {shown}", "", shown, ""),
        *(f"![{shown}](p.png)", "", f"|  | {cell} |", "| --- | --- |"),
        f"| {cell} | {cell} ({cell}) |",
    ]
    monkeypatch.setattr(explorer, "_bundle_library", str)
    page = make_page(name, blocks).decode()
    # A script is no markup.
    page = re.sub("<script.*?</script>", "", page, flags=re.DOTALL)
    assert "<b>" not in page and "&lt;b&gt;[x](y)|*z*" in page


def test_names_in_csv_are_no_formulas_and_stand_on_one_line():
    for name, shown in (
        *(("=1+1", "'=1+1"), ("+x", "'+x"), ("-x", "'-x")),
        *(("@SUM(1)", "'@SUM(1)"), ("\t=1", "'\t=1"), ("RoPE", "RoPE")),
        *(("-1.5e-3", "-1.5e-3"), ("a\nb\r\nc", "a b c"), ('a,"b"', 'a,"b"')),
    ):
        grid = make_row()
        run = dataclasses.replace(grid.runs[0], row=name, column=name)
        grid = dataclasses.replace(grid, runs=(run,))
        text = make_csv(grid, [report_run(run, None, grid)]).decode()
        assert len(text.splitlines()) == 2
        (row,) = csv.DictReader(io.StringIO(text))
        assert (row["row"], row["column"]) == (shown, shown)


def test_a_published_number_of_another_table_is_marked(tmp_path):
    published = ("ruoss_2023_table_1", "confounding_table_b1")
    grid = make_row(["RoPE", "ALiBi", "LogKERPLE"], published=published)
    runs = write_runs(tmp_path, grid, [0.5, None, 0.5])
    blocks = make_blocks(grid, runs)
    _, legend, notes = (b.text for b in blocks if isinstance(b, Paragraph))
    assert "from Ruoss et al., 2023, Table 1, is in parentheses" in legend
    assert notes == (
        "† seeds: 1; published: 3 to 10. ¶ from Confounding effects, "
        "Table B.1. 1 of 3 entries have no result yet; none of them have begun."
    )
    table, settings = (b for b in blocks if isinstance(b, Table))
    assert make_text("", [table]).splitlines()[-1] == (
        "| even_pairs | **55.0†** (51.0) | missing, 0 of 1 (67.3) | "
        "**55.0†** (**100.0¶**) | 50.0 | 40.0 |"
    )
    assert settings.head == (
        *("", "ours", "Ruoss et al., 2023, Table 1"),
        "Confounding effects, Table B.1",
    )
    rows = {name: [e.text for e in entries] for name, *entries in settings.rows}
    assert rows["seeds"] == ["1", "10", "3"]
    assert "parameters" not in rows
    curves = Curves([], [])
    shown = [Heading("Curves"), curves]
    assert make_blocks(grid, runs, curves)[-2:] == shown


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
    assert all(block in make_blocks(grid, runs) for block in blocks)
