"""Texts of a user in Markdown show as they are, read by a parser of it."""

import pytest
from markdown_it import MarkdownIt

from trainers.records.markdown import code, escape, table

MARKUP = (
    *("a|b", "||", "a\\|b", "a`b", "``a`", "<b>x</b>", "<!-- x -->", "&lt;x"),
    *("[x](y)", "![x](y)", "*x* **x**", "_x_ a_b __x__", "~~x~~", "a\nb"),
    *("$x$", "$x_{$", "a\\", "=1+1", "@SUM(1)", "\\[x\\]", "# x #x", "- x"),
)
"""Texts, such as names of directories, that mean more to Markdown or HTML."""

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def show(markdown):
    """The types and the texts that a reader sees."""
    leaves = [
        leaf
        for token in PARSER.parse(markdown)
        for leaf in token.children or ()
    ]
    return {leaf.type for leaf in leaves}, [leaf.content for leaf in leaves]


@pytest.mark.parametrize("text", MARKUP)
def test_a_text_and_a_cell_show_as_they_are(text):
    one_line = text.replace("\n", " ")
    for markdown in (escape(text), f"# {escape(text)}"):
        types, shown = show(markdown)
        assert types == {"text"}
        assert "".join(shown) == one_line
    assert show(code(text)) == ({"code_inline"}, [one_line])
    rows = [(code(text), escape(text), "2")]
    markdown = table((escape(text), "a", "b"), rows)
    assert len(markdown.splitlines()) == 3
    _, shown = show(markdown)
    # Parts of a text may be tokens of their own.
    assert "".join(shown) == f"{text}ab{text}{text}2".replace("\n", " ")
