"""Markdown, as reports have it."""


def table(head, rows):
    """The text of a table, without a line break at its end.

    Args:
        head: Names of the columns.
        rows: Cells of each row, as strings.

    >>> print(table(("chip", "memory"), [("v4", "32 GB")]))
    | chip | memory |
    | --- | --- |
    | v4 | 32 GB |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
