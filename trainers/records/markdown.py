"""Markdown of reports."""


def table(head, rows):
    """Returns a Markdown table, without a line break at its end.

    Args:
        head: Tuple of str, the names of the columns.
        rows: List of tuples of str, the cells of each row.

    >>> print(table(("chip", "memory"), [("v4", "32 GB")]))
    | chip | memory |
    | --- | --- |
    | v4 | 32 GB |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
