"""Makes README's table of results, one row for each experiment."""

import numpy as np

from benchmarks.result_tables import (
    WRITTEN,
    average_unseen_floor,
    find_digits,
    get_shares,
    group,
    read_comparison,
    read_demonstration,
    read_rows,
)
from trainers.records.markdown import table

NAMES = {
    "coupled near keys": "coupled positions",
    "NTK": "NTKRoPE",
}
"""Names of methods in this table that differ from those in their reports."""


def make_overview():
    """One row of every experiment: RoPE, the best method and the floor."""
    head = (
        "task",
        "trained on",
        "tested on",
        "measure",
        "`RoPE`",
        "best method",
        "floor",
    )
    rows = (
        _summarize_demonstration(),
        _summarize_evidence("missing_duplicate_string"),
        _summarize_frontier("copy", "100"),
        _summarize_addition("500"),
        _summarize_recall("1280"),
        _summarize_images(),
        _summarize_pretrained(8192, 12288),
    )
    return table(head, rows)


def _link_results(text, page):
    return f"[{text}](docs/results/{page}.md)"


def _compare(scores, baseline, floor=None):
    """Formats the scores of the baseline and of the best method, and a floor.

    Args:
        scores: Dict from names to numbers.
        baseline: str. The name of the baseline.
        floor: float; none: an empty cell.
    """
    name = max(scores, key=scores.get)
    label = f"`{name}`" if name[0].isupper() else name
    return (
        f"{scores[baseline]:.2f}",
        f"{label}: {scores[name]:.2f}",
        "" if floor is None else f"{floor:.2f}",
    )


def _summarize_demonstration():
    found = read_demonstration()
    scores = {name: run["final"]["score"] for name, run in found.items()}
    floor = average_unseen_floor(next(iter(found.values())))
    link = _link_results("even pairs", "demonstration")
    lengths = ("1-20 symbols", "21-100 symbols", "accuracy")
    return (link, *lengths, *_compare(scores, "RoPE", floor))


def _summarize_evidence(task):
    rows = group(read_rows("evidence"), "task")[task]
    floor = max(rows[0]["floor"], rows[0]["position_only"])
    scores = {
        name: np.mean([row["score"] for row in found])
        for name, found in group(rows, "encoding").items()
    }
    link = _link_results(task.replace("_", " "), "algorithmic")
    lengths = ("1-20 symbols", "25-100 symbols", "accuracy")
    return (link, *lengths, *_compare(scores, "RoPE", floor))


def _summarize_frontier(task, length):
    lengths = ("1-10 words", f"{length} words", "exact match")
    link = _link_results(task, "methods")
    return (link, *lengths, *_compare_at("frontier", task, length))


def _summarize_recall(length):
    lengths = ("4-20 tokens", f"{int(length):,} tokens", "accuracy")
    link = _link_results("needle", "published_tasks")
    return (link, *lengths, *_compare_at("published_tasks", "needle", length))


def _compare_at(name, task, length):
    """Compares the methods of a comparison at a length."""
    methods = read_comparison(name)[task]
    scores = {
        NAMES.get(name, name): np.median(
            [get_shares(run)[length] for run in runs]
        )
        for name, runs in methods.items()
    }
    floor = max(run["floor"] for runs in methods.values() for run in runs)
    return _compare(scores, "RoPE", floor)


def _summarize_addition(digits):
    names = {"ordinal": "RoPE", "coupled": NAMES["coupled near keys"]}
    scores = {
        names[variant]: np.median([run[WRITTEN][digits] for run in runs])
        for variant, runs in group(read_rows("addition"), "variant").items()
        if variant in names
    }
    lengths = ("1-10 digits", f"{digits} digits", "exact match")
    link = _link_results("addition", "addition")
    return (link, *lengths, *_compare(scores, "RoPE"))


def _summarize_images():
    rows = read_rows("images")
    scores = {row["encoding"]: [*row["accuracy"].values()][-1] for row in rows}
    trained = rows[0]["train_size"]
    tested = rows[0]["test_sizes"].rpartition(",")[2]
    sizes = (f"{trained} pixels", f"{tested} pixels", "accuracy")
    link = _link_results("digits as images", "images")
    return (link, *sizes, *_compare(scores, "RoPE"))


def _summarize_pretrained(first, last):
    scores = {
        NAMES.get(row["recipe"], row["recipe"]): find_digits(row, first, last)
        for row in read_rows("smollm2")
    }
    scores["RoPE"] = scores.pop("original")
    lengths = (
        f"{first:,} tokens",
        f"{first:,}-{last:,} tokens back",
        "digit accuracy",
    )
    link = _link_results("numbers in a text, SmolLM2", "pretrained")
    return (link, *lengths, *_compare(scores, "RoPE", 1 / 9))
