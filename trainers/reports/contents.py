"""What a report says of a table, and its rows as data."""

import csv
import io
import re

from trainers.reports.blocks import Entry, Heading, Paragraph, Table
from trainers.reports.cells import (
    find_best,
    find_decimals,
    find_floors,
    make_cells,
)
from trainers.reports.kinds import make_kinds
from trainers.reports.published import find_setting, name_table

FEWER, PARTIAL, DOUBTED, ELSEWHERE = "†", "‡", "§", "¶"
"""Footnotes: fewer seeds than published; not all runs have finished; a doubt
about a published number; a published number of another table than most."""

SCORES = {
    "score": " A score is the mean over the lengths above the trained ones.",
    "generated_score": " A score is the exact match of generated answers, the "
    "mean over the lengths above the trained ones.",
    "generated_mean": " A score is the exact match of generated answers, the "
    "mean over all lengths.",
}
"""What the scores of grids are."""

STATISTICS = {"max": "Maximum", "min": "Minimum", "mean": "Mean"}

SETTINGS = {
    "seeds": "seed",
    "learning_rates": "learning_rate",
    "steps": "steps",
    "batch_size": "batch_size",
    "layers": "num_layers",
    "width": "model_dim",
    "heads": "num_heads",
    "trained_length": "train_length",
    "evaluated_length": "test_lengths",
}
"""Flags of what both settings say, by its name in the published ones."""


def make_blocks(grid, runs, curves=None):
    """Returns the blocks of a report.

    Args:
        grid: The `Grid`.
        runs: List of a `ReportedRun` for each of its runs.
        curves: The `Curves` of the runs; `None`: there are none.
    """
    cells = make_cells(grid, runs)
    finished = sum(run.finished for run in runs)
    size = f"Size: {grid.size}. " if grid.size else ""
    blocks = [
        Paragraph(f"{size}{finished:,} of {len(runs):,} runs have finished."),
        *_make_section(grid, cells),
    ]
    other = grid.with_statistic(find_other_statistic(grid))
    other_cells = make_cells(other, runs)
    # They are the same if there is one run.
    if any(
        len(cell.runs) > 1
        or (cell.published and cell.published.statistic == other.statistic)
        for cell in other_cells
    ):
        blocks += _make_section(other, other_cells)
    blocks += make_kinds(grid, cells)
    settings = _make_settings(cells, runs)
    if settings.rows:
        blocks += [Heading("Settings"), settings]
    if curves:
        blocks += [Heading("Curves"), curves]
    return blocks


def find_other_statistic(grid):
    """Returns the statistic of the second table of a report."""
    if grid.statistic != "mean":
        return "mean"
    return "max" if grid.higher_is_better else "min"


def make_table(grid, cells):
    """Returns the `Table` in the layout of the published one."""
    best, published_best = find_best(grid, cells)
    source = find_source(cells)
    entries, floors, problems = {}, {}, {}
    for index, cell in enumerate(cells):
        problems.setdefault(cell.row, []).extend(cell.runs)
        if cell.runs or cell.published:
            column = _name_column(cell, cells)
            entries[cell.row, column] = _make_entry(
                grid, cell, index in best, index in published_best, source
            )
    for row, runs in problems.items():
        floors[row] = {
            f"floor: {label}": Entry(
                f"{value:.{1 if grid.unit == '%' else 3}f}"
            )
            for label, value in find_floors(grid, runs).items()
        }
    # All columns of a length stand together.
    ordered = sorted(cells, key=lambda cell: cell.length or 0)
    filled = {column for _, column in entries}
    columns = [
        column
        for column in dict.fromkeys(_name_column(p, cells) for p in ordered)
        if column in filled
    ]
    labels = list(dict.fromkeys(n for found in floors.values() for n in found))
    rows = [
        (
            row,
            *(entries.get((row, column), Entry("")) for column in columns),
            *(floors[row].get(label, Entry("")) for label in labels),
        )
        for row in problems
    ]
    return Table(("", *columns, *labels), rows)


def make_csv(grid, runs):
    """Returns a row of CSV for each cell, bytes.

    Args:
        grid: The `Grid`.
        runs: List of a `ReportedRun` for each of its runs.
    """
    file = io.StringIO()
    writer = None
    means = make_cells(grid.with_statistic("mean"), runs)
    for cell, mean in zip(make_cells(grid, runs), means, strict=True):
        published = cell.published
        setting = find_setting(published.file) if published else {}
        scores = [
            run.scores[cell.length]
            for run in cell.runs
            if cell.length in run.scores
        ]
        row = {
            "row": cell.row,
            "column": cell.column,
            "length": "" if cell.length is None else cell.length,
            "unit": grid.unit,
            "statistic": grid.statistic,
            "value": _number(cell.value),
            "maximum": _number(max(scores, default=None)),
            "minimum": _number(min(scores, default=None)),
            "mean": _number(mean.value),
            "deviation": _number(mean.deviation),
            "runs_of_mean": len(mean.counted),
            "state": cell.state,
            "runs": len(cell.runs),
            "finished_runs": cell.finished,
            "seeds": cell.seeds,
            "learning_rates": cell.learning_rates,
            **{
                name: ", ".join(map(str, _values(cell.counted, flag)))
                for name, flag in SETTINGS.items()
                if name in ("steps", "layers", "width")
            },
            "published": published.text if published else "",
            "published_note": published.note if published else "",
            **_describe_published_mean(mean.published),
            "published_in": name_table(published.file) if published else "",
            **{
                f"published_{name}": setting.get(name, "")
                for name in (
                    *("seeds", "learning_rates", "steps", "layers", "width"),
                    "parameters",
                )
            },
        }
        if writer is None:
            writer = csv.DictWriter(file, row, lineterminator="\n")
            writer.writeheader()
        writer.writerow({name: _to_cell(value) for name, value in row.items()})
    return file.getvalue().encode()


def find_source(cells):
    """Returns the file that most published numbers of cells are from."""
    files = [cell.published.file for cell in cells if cell.published]
    return max(dict.fromkeys(files), key=files.count, default="")


def _describe_published_mean(number):
    # A number without a statistic, such as that of a single run, is no mean.
    known = number is not None and number.statistic == "mean"
    return {
        "published_mean": number.text if known else "",
        "published_deviation": number.deviation if known else "",
    }


def _make_section(grid, cells):
    """Returns the heading of a table, its legend, the table and its notes."""
    title = STATISTICS[grid.statistic]
    legend = (
        f"{title} {'training time' if grid.is_time else 'score'} of the runs"
    )
    if grid.statistic == "mean":
        title += " ± standard deviation"
        if grid.chosen and any(cell.learning_rates > 1 for cell in cells):
            legend += f" with the best {grid.chosen.replace('_', ' ')}"
        legend += " ± sample standard deviation"
    legend += f", in {grid.unit}." if grid.unit else "."
    legend += SCORES.get(grid.score, "")
    source = find_source(cells)
    if source:
        legend += (
            f" The published number, from {name_table(source)}, is in "
            "parentheses."
        )
    legend += " Bold: the best of each row"
    legend += " and length." if grid.lengths else "."
    return [
        Heading(title),
        Paragraph(legend),
        make_table(grid, cells),
        *_make_footnotes(cells, source),
    ]


def _name_column(cell, cells):
    """Returns the head of the column that a cell stands in."""
    name = cell.column if cell.runs else f"published: {cell.column}"
    if cell.length is None:
        return name
    if len({other.column for other in cells}) == 1:
        return f"{cell.length:,}"
    return f"{name}, {cell.length:,}"


def _make_entry(grid, cell, best, published_best, source):
    published, theirs = cell.published, {}
    if published:
        theirs = {
            "published": _with_deviation(published.text, published.deviation),
            "published_best": published_best,
            "published_marks": ELSEWHERE * (published.file != source)
            + DOUBTED * bool(published.doubt),
        }
    if not cell.runs:
        return Entry("", state=cell.state, **theirs)
    if cell.value is None:
        text = f"{cell.state}, 0 of {len(cell.runs)}"
        if cell.finished:
            text = "not measured"
        return Entry(text, state=cell.state, **theirs)
    digits = find_decimals(cell, grid)
    deviation = cell.deviation
    text = _with_deviation(
        f"{cell.value:.{digits}f}",
        "" if deviation is None else f"{deviation:.{digits}f}",
    )
    marks = FEWER * _has_fewer_seeds(cell)
    marks += PARTIAL * (cell.state == "incomplete")
    return Entry(text, best, marks=marks, state=cell.state, **theirs)


def _has_fewer_seeds(cell):
    if cell.published is None:
        return False
    return 0 < cell.seeds < find_setting(cell.published.file).get("seeds", 0)


def _make_footnotes(cells, source):
    notes = []
    fewer = [p for p in cells if _has_fewer_seeds(p)]
    if fewer:
        seeds = _span({p.seeds for p in fewer})
        wanted = _span({find_setting(p.published.file)["seeds"] for p in fewer})
        notes.append(f"{FEWER} seeds: {seeds}; published: {wanted}.")
    partial = [p for p in cells if p.state == "incomplete"]
    if partial:
        done = _span({p.finished for p in partial})
        planned = _span({len(p.runs) for p in partial})
        notes.append(f"{PARTIAL} {done} of {planned} runs have finished.")
    numbers = [(p, p.published) for p in cells if p.published]
    sources = {name_table(n.file) for _, n in numbers if n.file != source}
    if sources:
        notes.append(f"{ELSEWHERE} from {' or '.join(sorted(sources))}.")
    doubts: dict[str, list] = {}
    for cell, number in numbers:
        if number.doubt:
            named = doubts.setdefault(number.doubt, [])
            named.append(", ".join(filter(None, [cell.row, cell.column])))
    if doubts:
        texts = (
            f"{' and '.join(dict.fromkeys(named))}: {doubt}"
            for doubt, named in doubts.items()
        )
        notes.append(f"{DOUBTED} doubtful: {'; '.join(texts)}.")
    waiting = [p for p in cells if p.runs and not p.finished]
    if waiting:
        begun = sum(p.state == "unfinished" for p in waiting)
        entries = sum(bool(p.runs) for p in cells)
        notes.append(
            f"{len(waiting)} of {entries} entries have no result yet; "
            f"{begun or 'none'} of them have begun."
        )
    return [Paragraph(" ".join(notes))] if notes else []


def _make_settings(cells, runs):
    """Returns our settings and those of each published table, in columns."""
    numbers = [cell.published for cell in cells if cell.published]
    files = list(dict.fromkeys(number.file for number in numbers))
    done = [run for run in runs if run.finished]
    rows = []
    for name, flag in SETTINGS.items():
        found = _values(done, flag)
        if name in ("seeds", "learning_rates"):
            ours = str(len(found)) if found else ""
        else:
            ours = _join(found)
        theirs = [
            _join_lengths(numbers, name, file)
            if name.endswith("_length")
            else _format(find_setting(file).get(name, ""))
            for file in files
        ]
        # Not every trainer has every flag.
        if ours or (any(theirs) and not done):
            entries = [ours or "no result yet"]
            entries += [text or "not stated" for text in theirs]
            rows.append((name.replace("_", " "), *map(Entry, entries)))
    return Table(("", "ours", *map(name_table, files)), rows)


def _join_lengths(numbers, name, file):
    """Returns the lengths of the numbers of a file, shorter texts first."""
    texts = {getattr(n, name) for n in numbers if n.file == file} - {""}
    return ", ".join(sorted(texts, key=lambda text: (len(text), text)))


def _values(runs, flag):
    """Returns the different values of a flag of runs, sorted."""
    found = {run.config[flag] for run in runs if flag in run.config}
    return sorted(found, key=lambda value: (str(type(value)), value))


def _join(values):
    return ", ".join(map(_format, values))


def _format(value):
    return f"{value:,}" if isinstance(value, int) else str(value)


def _span(numbers):
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _to_cell(value):
    """Returns a value as a cell of CSV, where a text is on one line.

    Spreadsheets would take a text such as `=1+1` for a formula.
    """
    if not isinstance(value, str):
        return value
    text = re.sub(r"\s*[\r\n]\s*", " ", value)
    is_number = re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", text)
    is_formula = text.startswith(("=", "+", "-", "@", "\t")) and not is_number
    return f"'{text}" if is_formula else text


def _number(value):
    return "" if value is None else f"{value:.6g}"


def _with_deviation(value, deviation):
    return f"{value} ± {deviation}" if deviation else value
