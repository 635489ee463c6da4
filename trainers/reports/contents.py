"""What a report says of a table, and its rows as data."""

import csv
import io

from trainers.reports.blocks import Entry, Heading, Paragraph, Table
from trainers.reports.places import find_best, find_decimals, find_floors
from trainers.reports.published import find_setting

FEWER, PARTIAL = "†", "‡"
"""Footnotes: fewer seeds than the paper; not all runs have finished."""

STATISTICS = {
    "max": "the highest score",
    "min": "the lowest score",
    "mean": "the mean score, with the sample standard deviation,",
}

SETTINGS = {
    "seeds": "seed",
    "learning_rates": "learning_rate",
    "steps": "steps",
    "batch_size": "batch_size",
    "layers": "num_layers",
    "width": "model_dim",
    "heads": "num_heads",
    "parameters": None,
    "trained_length": "train_length",
    "evaluated_length": "test_lengths",
}
"""Flags of what both settings say, by its name in the published ones."""


def make_blocks(grid, places, pictures):
    """Returns the blocks of a report.

    Args:
        grid: The `Grid`.
        places: List of its `Place`s.
        pictures: List of `Picture`s of its curves.
    """
    runs = list({id(run): run for p in places for run in p.runs}.values())
    finished = sum(run.finished for run in runs)
    size = f"Size: {grid.size}. " if grid.size else ""
    legend = f"Each entry is {STATISTICS[grid.statistic]} of its runs"
    if grid.chosen:
        legend += f" with the best {grid.chosen.replace('_', ' ')}"
    legend += f", in {grid.unit}" if grid.unit else ""
    if grid.published:
        legend += "; in parentheses stands the published number"
    blocks = [
        Paragraph(f"{size}{finished:,} of {len(runs):,} runs have finished."),
        Paragraph(f"{legend}. Bold: the best of each problem and length."),
        make_table(grid, places),
        *_make_footnotes(grid, places),
        Heading("Settings"),
        _make_settings(grid, places, runs),
    ]
    if pictures:
        blocks += [Heading("Curves"), *pictures]
    return blocks


def make_table(grid, places):
    """Returns the `Table` in the layout of the published one."""
    best, published_best = find_best(grid, places)
    entries, floors, problems = {}, {}, {}
    for index, place in enumerate(places):
        column = _name_column(place, places)
        entries[place.row, column] = _make_entry(
            grid, place, index in best, index in published_best
        )
        problems.setdefault(place.row, []).extend(place.runs)
    for row, runs in problems.items():
        floors[row] = {
            f"floor: {label}": Entry(
                f"{value:.{1 if grid.unit == '%' else 3}f}"
            )
            for label, value in find_floors(grid, runs).items()
        }
    # All columns of a length stand together.
    ordered = sorted(places, key=lambda place: place.length or 0)
    columns = list(dict.fromkeys(_name_column(p, places) for p in ordered))
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


def make_csv(grid, places):
    """Returns a row of CSV for each place, bytes."""
    file = io.StringIO()
    writer = None
    setting = find_setting(grid.published)
    for place in places:
        published = place.published
        row = {
            "row": place.row,
            "column": place.column,
            "length": "" if place.length is None else place.length,
            "unit": grid.unit,
            "statistic": grid.statistic,
            "value": _number(place.value),
            "deviation": _number(place.deviation),
            "state": place.state,
            "runs": len(place.runs),
            "finished_runs": place.finished,
            "seeds": place.seeds,
            "learning_rates": place.learning_rates,
            "steps": _join(_values(place.counted, "steps")),
            "layers": _join(_values(place.counted, "num_layers")),
            "width": _join(_values(place.counted, "model_dim")),
            "published": published.text if published else "",
            "published_deviation": published.deviation if published else "",
            "published_note": published.note if published else "",
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
        writer.writerow(row)
    return file.getvalue().encode()


def _name_column(place, places):
    """Returns the head of the column that a place stands in."""
    if place.length is None:
        return place.column
    if len({other.column for other in places}) == 1:
        return f"{place.length:,}"
    return f"{place.column}, {place.length:,}"


def _make_entry(grid, place, best, published_best):
    published = place.published
    shown = ""
    if published:
        shown = _with_deviation(published.text, published.deviation)
    if place.value is None:
        text = f"{place.state}, 0 of {len(place.runs)}"
        if place.finished:
            text = "not measured"
        return Entry(text, False, shown, published_best, state=place.state)
    digits = find_decimals(place, grid)
    deviation = place.deviation
    text = _with_deviation(
        f"{place.value:.{digits}f}",
        "" if deviation is None else f"{deviation:.{digits}f}",
    )
    marks = FEWER * _has_fewer_seeds(grid, place)
    marks += PARTIAL * (place.state == "incomplete")
    return Entry(text, best, shown, published_best, marks, place.state)


def _has_fewer_seeds(grid, place):
    wanted = find_setting(grid.published).get("seeds", 0)
    return 0 < place.seeds < wanted and place.published is not None


def _make_footnotes(grid, places):
    notes = []
    fewer = [p for p in places if _has_fewer_seeds(grid, p)]
    if fewer:
        seeds = _span({p.seeds for p in fewer})
        wanted = find_setting(grid.published)["seeds"]
        notes.append(f"{FEWER} seeds: {seeds}; published: {wanted}.")
    partial = [p for p in places if p.state == "incomplete"]
    if partial:
        done = _span({p.finished for p in partial})
        planned = _span({len(p.runs) for p in partial})
        notes.append(f"{PARTIAL} {done} of {planned} runs have finished.")
    waiting = [p for p in places if not p.finished]
    if waiting:
        begun = sum(p.state == "unfinished" for p in waiting)
        notes.append(
            f"{len(waiting)} of {len(places)} entries have no result yet; runs "
            f"of {begun} of them have begun."
        )
    return [Paragraph(" ".join(notes))] if notes else []


def _make_settings(grid, places, runs):
    """Returns what both settings are, in two columns."""
    known = find_setting(grid.published)
    numbers = [place.published for place in places if place.published]
    done = [run for run in runs if run.finished]
    rows = []
    for name, flag in SETTINGS.items():
        found = _values(done, flag) if flag else []
        if name in ("seeds", "learning_rates"):
            ours = str(len(found)) if found else ""
        else:
            ours = _join(found)
        theirs = _format(known.get(name, ""))
        if name.endswith("_length"):
            texts = {getattr(number, name) for number in numbers} - {""}
            theirs = ", ".join(
                sorted(texts, key=lambda text: (len(text), text))
            )
        if ours or theirs:
            entries = (
                Entry(ours or "not recorded"),
                Entry(theirs or "not stated"),
            )
            rows.append((name.replace("_", " "), *entries[: 1 + bool(numbers)]))
    head = ("", "ours", "published")
    return Table(head[: 2 + bool(numbers)], rows)


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


def _number(value):
    return "" if value is None else f"{value:.6g}"


def _with_deviation(value, deviation):
    return f"{value} ± {deviation}" if deviation else value
