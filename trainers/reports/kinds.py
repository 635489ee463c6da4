"""The section of a report about kinds of examples."""

import statistics

from trainers.reports.blocks import Entry, Heading, Paragraph, Table

LEGEND = (
    "The score of each kind of example at each length: the mean of the runs, "
    "and in parentheses the worst of several."
)


def make_kinds(grid, cells):
    """Returns a heading, and a table for each cell that tells kinds apart.

    Args:
        grid: The `Grid`.
        cells: List of `Cell`s; one of each row and column is enough.

    Returns:
        List of blocks; empty: no cell does.
    """
    blocks = []
    named = {(cell.row, cell.column): cell for cell in cells}
    for (row, column), cell in named.items():
        runs = [run for run in cell.runs if run.kinds]
        if runs:
            blocks += [Paragraph(f"{row}, {column}:"), _make_table(grid, runs)]
    if not blocks:
        return []
    unit = f" In {grid.unit}." if grid.unit else ""
    return [Heading("Kinds of examples"), Paragraph(LEGEND + unit), *blocks]


def _make_table(grid, runs):
    kinds = list(dict.fromkeys(kind for run in runs for kind in run.kinds))
    lengths = sorted(
        {n for run in runs for by in run.kinds.values() for n in by}
    )
    return Table(
        ("", *(f"{length:,}" for length in lengths)),
        [
            (kind, *(_make_entry(grid, runs, kind, n) for n in lengths))
            for kind in kinds
        ],
    )


def _make_entry(grid, runs, kind, length):
    values = [
        run.kinds[kind][length]
        for run in runs
        if length in run.kinds.get(kind, ())
    ]
    if not values:
        return Entry("not measured")
    worst = (min if grid.higher_is_better else max)(values)
    digits = 1 if grid.unit == "%" else 3
    text = f"{statistics.fmean(values):.{digits}f}"
    return Entry(text + f" ({worst:.{digits}f})" * (len(values) > 1))
