"""Links on the pages lead to files, and to headings of these."""

import re

import pytest

from tests.docs.test_pages import ROOT, TEXTS


def find_anchors(path):
    """The anchors of the headings of a page, as GitHub and MyST make them."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.S | re.M)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", text, re.M)
    }


def list_links(page):
    """The links of a page to files: path and anchor, relative to the page."""
    code = r"^```.*?^```$|`[^`\n]*`|`"
    text = re.sub(code, "", TEXTS[page], flags=re.S | re.M)
    return [
        tuple(link.partition("#")[::2])
        for link in re.findall(r"\]\(([^)\s]+)\)", text)
        if not re.match(r"\w+:", link)
    ]


@pytest.mark.parametrize("page", TEXTS)
def test_links_lead_somewhere(page):
    for path, anchor in list_links(page):
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), path
        if anchor:
            assert target.suffix == ".md", f"{path}#{anchor}"
            assert anchor in find_anchors(target), f"{path}#{anchor}"


def test_pages_that_programs_name_exist():
    found = [
        (path, name)
        for folder in ("keras_lengen", "trainers", "datasets", "benchmarks")
        for path in (ROOT / folder).rglob("*.[pm][yd]")
        for name in re.findall(r"docs/[\w/]+\.md", path.read_text())
    ]
    assert found
    for path, name in found:
        assert (ROOT / name).exists(), f"{path}: {name}"


def test_every_page_of_the_site_is_in_the_table_of_contents():
    index = TEXTS["docs/index.md"]
    listed = [
        f"docs/{line}.md"
        for block in re.findall(r"```{toctree}\n(.*?)```", index, re.S)
        for line in block.splitlines()
        if line and not line.startswith(":")
    ]
    pages = [page for page in TEXTS if page.startswith("docs/")]
    assert sorted(listed) == sorted({*pages} - {"docs/index.md"})
