"""What a report says of a table, and its rows as data."""

import csv
import io
import re

from trainers.reports.blocks import Entry, Heading, Paragraph, Table
from trainers.reports.kinds import make_kinds
from trainers.reports.places import (
    find_best,
    find_decimals,
    find_floors,
    make_places,
)
from trainers.reports.published import find_setting, name_table

FEWER, PARTIAL, DOUBTED, ELSEWHERE = "†", "‡", "§", "¶"
"""Footnotes: fewer seeds than published; not all runs have finished; a doubt
about a published number; a published number of another table than most."""

SCORES = {
    "score": " A score is the mean over the lengths above the trained ones.",
    "generated_score": " A score is the share of right answers that the model "
    "wrote itself, the mean over the lengths above the trained ones.",
    "generated_mean": " A score is the share of right answers that the model "
    "wrote itself, the mean over all lengths.",
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


def make_blocks(grid, runs, pictures, flags=""):
    """Returns the blocks of a report.

    Args:
        grid: The `Grid`.
        runs: List of a `Run` for each of its cells.
        pictures: List of `Picture`s of its curves.
        flags: str. Further flags of all runs.
    """
    places = make_places(grid, runs)
    finished = sum(run.finished for run in runs)
    size = f"Size: {grid.size}. " if grid.size else ""
    blocks = [
        Paragraph(f"{size}{finished:,} of {len(runs):,} runs have finished."),
        *([Paragraph(f"Further flags of all runs: {flags}.")] if flags else []),
        *_make_section(grid, places),
    ]
    other = grid.with_statistic(find_other_statistic(grid))
    others = make_places(other, runs)
    # They are the same if there is one run.
    if any(
        len(place.runs) > 1
        or (place.published and place.published.statistic == other.statistic)
        for place in others
    ):
        blocks += _make_section(other, others)
    blocks += make_kinds(grid, places)
    settings = _make_settings(places, runs)
    if settings.rows:
        blocks += [Heading("Settings"), settings]
    if pictures:
        blocks += [Heading("Curves"), *pictures]
    return blocks


def find_other_statistic(grid):
    """Returns the statistic of the second table of a report."""
    if grid.statistic != "mean":
        return "mean"
    return "max" if grid.higher_is_better else "min"


def make_table(grid, places):
    """Returns the `Table` in the layout of the published one."""
    best, published_best = find_best(grid, places)
    source = find_source(places)
    entries, floors, problems = {}, {}, {}
    for index, place in enumerate(places):
        problems.setdefault(place.row, []).extend(place.runs)
        if place.runs or place.published:
            column = _name_column(place, places)
            entries[place.row, column] = _make_entry(
                grid, place, index in best, index in published_best, source
            )
    for row, runs in problems.items():
        floors[row] = {
            f"floor: {label}": Entry(
                f"{value:.{1 if grid.unit == '%' else 3}f}"
            )
            for label, value in find_floors(grid, runs).items()
        }
    # All columns of a length stand together.
    ordered = sorted(places, key=lambda place: place.length or 0)
    filled = {column for _, column in entries}
    columns = [
        column
        for column in dict.fromkeys(_name_column(p, places) for p in ordered)
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
    """Returns a row of CSV for each place, bytes.

    Args:
        grid: The `Grid`.
        runs: List of a `Run` for each of its cells.
    """
    file = io.StringIO()
    writer = None
    means = make_places(grid.with_statistic("mean"), runs)
    for place, mean in zip(make_places(grid, runs), means, strict=True):
        published = place.published
        setting = find_setting(published.file) if published else {}
        scores = [
            run.scores[place.length]
            for run in place.runs
            if place.length in run.scores
        ]
        row = {
            "row": place.row,
            "column": place.column,
            "length": "" if place.length is None else place.length,
            "unit": grid.unit,
            "statistic": grid.statistic,
            "value": _number(place.value),
            "maximum": _number(max(scores, default=None)),
            "minimum": _number(min(scores, default=None)),
            "mean": _number(mean.value),
            "deviation": _number(mean.deviation),
            "runs_of_mean": len(mean.counted),
            "state": place.state,
            "runs": len(place.runs),
            "finished_runs": place.finished,
            "seeds": place.seeds,
            "learning_rates": place.learning_rates,
            **{
                name: ", ".join(map(str, _values(place.counted, flag)))
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


def find_source(places):
    """Returns the file that most published numbers of places are from."""
    files = [place.published.file for place in places if place.published]
    return max(dict.fromkeys(files), key=files.count, default="")


def _describe_published_mean(number):
    # A number without a statistic, such as that of a single run, is no mean.
    known = number is not None and number.statistic == "mean"
    return {
        "published_mean": number.text if known else "",
        "published_deviation": number.deviation if known else "",
    }


def _make_section(grid, places):
    """Returns the heading of a table, its legend, the table and its notes."""
    title = STATISTICS[grid.statistic]
    legend = (
        f"{title} {'training time' if grid.is_time else 'score'} of the runs"
    )
    if grid.statistic == "mean":
        title += " ± standard deviation"
        if grid.chosen and any(place.learning_rates > 1 for place in places):
            legend += f" with the best {grid.chosen.replace('_', ' ')}"
        legend += " ± sample standard deviation"
    legend += f", in {grid.unit}." if grid.unit else "."
    legend += SCORES.get(grid.score, "")
    source = find_source(places)
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
        make_table(grid, places),
        *_make_footnotes(places, source),
    ]


def _name_column(place, places):
    """Returns the head of the column that a place stands in."""
    name = place.column if place.runs else f"published: {place.column}"
    if place.length is None:
        return name
    if len({other.column for other in places}) == 1:
        return f"{place.length:,}"
    return f"{name}, {place.length:,}"


def _make_entry(grid, place, best, published_best, source):
    published, theirs = place.published, {}
    if published:
        theirs = {
            "published": _with_deviation(published.text, published.deviation),
            "published_best": published_best,
            "published_marks": ELSEWHERE * (published.file != source)
            + DOUBTED * bool(published.doubt),
        }
    if not place.runs:
        return Entry("", state=place.state, **theirs)
    if place.value is None:
        text = f"{place.state}, 0 of {len(place.runs)}"
        if place.finished:
            text = "not measured"
        return Entry(text, state=place.state, **theirs)
    digits = find_decimals(place, grid)
    deviation = place.deviation
    text = _with_deviation(
        f"{place.value:.{digits}f}",
        "" if deviation is None else f"{deviation:.{digits}f}",
    )
    marks = FEWER * _has_fewer_seeds(place)
    marks += PARTIAL * (place.state == "incomplete")
    return Entry(text, best, marks=marks, state=place.state, **theirs)


def _has_fewer_seeds(place):
    if place.published is None:
        return False
    return 0 < place.seeds < find_setting(place.published.file).get("seeds", 0)


def _make_footnotes(places, source):
    notes = []
    fewer = [p for p in places if _has_fewer_seeds(p)]
    if fewer:
        seeds = _span({p.seeds for p in fewer})
        wanted = _span({find_setting(p.published.file)["seeds"] for p in fewer})
        notes.append(f"{FEWER} seeds: {seeds}; published: {wanted}.")
    partial = [p for p in places if p.state == "incomplete"]
    if partial:
        done = _span({p.finished for p in partial})
        planned = _span({len(p.runs) for p in partial})
        notes.append(f"{PARTIAL} {done} of {planned} runs have finished.")
    numbers = [(p, p.published) for p in places if p.published]
    others = {name_table(n.file) for _, n in numbers if n.file != source}
    if others:
        notes.append(f"{ELSEWHERE} from {' or '.join(sorted(others))}.")
    doubts: dict[str, list] = {}
    for place, number in numbers:
        if number.doubt:
            named = doubts.setdefault(number.doubt, [])
            named.append(", ".join(filter(None, [place.row, place.column])))
    if doubts:
        texts = (
            f"{' and '.join(dict.fromkeys(named))}: {doubt}"
            for doubt, named in doubts.items()
        )
        notes.append(f"{DOUBTED} doubtful: {'; '.join(texts)}.")
    waiting = [p for p in places if p.runs and not p.finished]
    if waiting:
        begun = sum(p.state == "unfinished" for p in waiting)
        entries = sum(bool(p.runs) for p in places)
        notes.append(
            f"{len(waiting)} of {entries} entries have no result yet; "
            f"{begun or 'none'} of them have begun."
        )
    return [Paragraph(" ".join(notes))] if notes else []


def _make_settings(places, runs):
    """Returns our settings and those of each published table, in columns."""
    numbers = [place.published for place in places if place.published]
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
