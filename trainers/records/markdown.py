"""Markdown of reports."""

import re

_MARKUP = re.compile(
    r"[\\`*\[\]<~$#]|^[-+>]|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])"
)
"""Characters of plain text that Markdown does not show as they are."""


def table(head, rows):
    """Returns a Markdown table, without a line break at its end.

    Args:
        head: Tuple of str, the names of the columns.
        rows: List of tuples of str, the cells of each row, in Markdown.

    >>> print(table(("chip", "memory"), [("v4", "32 GB")]))
    | chip | memory |
    | --- | --- |
    | v4 | 32 GB |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_to_cell, line))} |" for line in lines)


def escape(text):
    r"""Returns Markdown that shows a plain text, on one line.

    >>> print(escape("<b> of task_a, _b_"))
    \<b> of task_a, \_b\_
    """
    return _MARKUP.sub(r"\\\g<0>", _one_line(text))


def code(text):
    """Returns Markdown that shows a text as code, on one line.

    >>> print(code("RoPE"), code("a`b"))
    `RoPE` ``a`b``
    """
    text = _one_line(text)
    marks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " if "`" in (text[:1], text[-1:]) else ""
    return f"{marks}{space}{text}{space}{marks}"


def _to_cell(text):
    # A bar ends a cell even in code.
    return _one_line(text).replace("|", r"\|")


def _one_line(text):
    return re.sub(r"\s*[\r\n]\s*", " ", text)
