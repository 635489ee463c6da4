"""A report as one HTML page that needs no other file."""

from xml.etree import ElementTree

from trainers.reports.blocks import Code, Curves, Heading, Paragraph, Table
from trainers.reports.explorer import make_fragment

STYLE = """
:root { color-scheme: light dark; --text: #1d2129; --dim: #5d6673;
  --page: #fff; --line: #d8dde3; --head: #f2f4f7; --warn: #a33b00; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e3e6ea; --dim: #9aa4b1; --page: #15181d; --line: #343a43;
    --head: #20252c; --warn: #ffa26b; } }
body { margin: 0 auto; max-width: 80rem; padding: 1rem; color: var(--text);
  background: var(--page); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; }
h2 { font-size: 1.2rem; margin-top: 2rem; }
pre { overflow-x: auto; padding: .6rem; background: var(--head); }
p { max-width: 46rem; overflow-wrap: anywhere; }
.scroll { overflow: auto; width: fit-content; max-width: 100%;
  max-height: 90vh; border: 1px solid var(--line); }
table { border-collapse: separate; border-spacing: 0; font-size: .875rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
thead th { position: sticky; top: 0; z-index: 1; background: var(--head); }
th:first-child { position: sticky; left: 0; text-align: left;
  background: var(--head); }
thead th:first-child { z-index: 2; }
thead th { white-space: normal; vertical-align: bottom; max-width: 9rem; }
tbody th { font-weight: normal; white-space: normal; max-width: 40vw;
  min-width: min-content; overflow-wrap: break-word; }
td small { display: block; color: var(--dim); }
td.missing, td.unfinished { color: var(--warn); }
"""


CURVES = "curves"
"""Comment in place of the curves, whose HTML is not XML."""


def make_page(title, blocks):
    """Returns a page, bytes of HTML.

    Args:
        title: str.
        blocks: List of the blocks of `trainers.reports.blocks`.
    """
    page = ElementTree.Element("html", lang="en")
    head = ElementTree.SubElement(page, "head")
    ElementTree.SubElement(head, "meta", charset="utf-8")
    _add(
        head,
        "meta",
        name="viewport",
        content="width=device-width, initial-scale=1",
    )
    _add(head, "title", title)
    _add(head, "style", STYLE)
    body = ElementTree.SubElement(page, "body")
    _add(body, "h1", title)
    fragment = ""
    for block in blocks:
        match block:
            case Heading(text):
                _add(body, "h2", text)
            case Paragraph(text):
                _add(body, "p", text)
            case Code(text):
                _add(body, "pre", text)
            case Table():
                _add_table(body, block)
            case Curves(panels):
                body.append(ElementTree.Comment(CURVES))
                fragment = make_fragment(panels)
    text = ElementTree.tostring(page, encoding="unicode", method="html")
    text = text.replace(f"<!--{CURVES}-->", fragment)
    return f"<!DOCTYPE html>\n{text}\n".encode()


def _add(parent, tag, text=None, **attributes):
    """Adds an element, and returns it."""
    element = ElementTree.SubElement(parent, tag, attributes)
    element.text = text
    return element


def _add_table(body, table):
    # Focusable, so that keys scroll it.
    attributes = {"class": "scroll", "tabindex": "0"}
    drawn = _add(_add(body, "div", **attributes), "table")
    row = _add(_add(drawn, "thead"), "tr")
    for name in table.head:
        _add(row, "th", name, scope="col")
    rows = _add(drawn, "tbody")
    for name, *entries in table.rows:
        row = _add(rows, "tr")
        _add(row, "th", name, scope="row")
        for entry in entries:
            _add_entry(row, entry)


def _add_entry(row, entry):
    cell = _add(row, "td", **({"class": entry.state} if entry.state else {}))
    text = f"{entry.text}{entry.marks}"
    if entry.best:
        _add(cell, "b", text)
    else:
        cell.text = text
    if entry.published:
        small = _add(cell, "small")
        shown = _add(small, "b") if entry.published_best else small
        shown.text = f"({entry.published}{entry.published_marks})"
