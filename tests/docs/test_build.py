"""One command writes every generated table; the committed ones are current."""

import pytest

from docs import (
    build,
    build_reference,
    build_scaling,
    explorer,
    measured_curves,
    result_pictures,
)
from tests.docs.test_pages import TEXTS

MARKERS = ("\n<!-- results:", "\n<!-- classes:", "\n<!-- figures\n")


def test_every_page_with_a_marker_is_written():
    marked = [
        build.ROOT / name
        for name, text in TEXTS.items()
        if any(marker in text for marker in MARKERS)
    ]
    assert sorted(build.PAGES) == sorted(marked)


@pytest.mark.parametrize(
    "page", build.PAGES, ids=lambda page: str(page.relative_to(build.ROOT))
)
def test_tables_and_figures_are_current(page):
    text = page.read_text()
    assert build.rebuild(text) == text, "run python -m docs.build"


def test_only_the_table_after_a_marker_is_replaced(monkeypatch):
    table = "| a |\n| --- |\n| 2 |"
    monkeypatch.setitem(build.TABLES["results"], "toy", lambda: table)
    before = "# Page\n\n<!-- results: toy -->\n"
    after = "\nText.\n\n| other |\n| --- |\n"
    expected = f"{before}\n{table}\n{after}"
    assert build.replace_tables(f"{before}{after}") == expected
    assert build.replace_tables(expected) == expected
    stale = expected.replace("| 2 |", "| 1 |\n| 3 |")
    assert build.replace_tables(stale) == expected


def test_all_pages_are_written(monkeypatch, tmp_path):
    current = [page.read_text() for page in build.PAGES]
    copies = [tmp_path / f"{number}.md" for number in range(len(current))]
    for copy, text in zip(copies, current, strict=True):
        copy.write_text(text.replace("\n| `RoPE` |", "\n| stale |"))
    scaling, calls = tmp_path / "scaling.md", []
    monkeypatch.setattr(build, "PAGES", copies)
    monkeypatch.setattr(build_scaling, "PAGE", scaling)
    monkeypatch.setattr(build_reference, "main", lambda: calls.append(1))
    curves = tmp_path / "curves.json"
    monkeypatch.setattr(explorer, "CURVES", curves)
    monkeypatch.setattr(measured_curves, "make_panels", lambda: [])
    monkeypatch.setattr(result_pictures, "main", calls.append)
    build.main()
    assert [copy.read_text() for copy in copies] == current
    assert scaling.read_text() == build_scaling.make_page()
    assert (calls, curves.read_text()) == ([[], 1], "[]\n")
