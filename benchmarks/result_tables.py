"""Makes the tables of results on the pages from the committed reports."""

import csv
import json
import pathlib

import numpy as np

from datasets.text_tasks.structured_digits import UNIFORM
from trainers.records.markdown import table

RESULTS = pathlib.Path(__file__).parent / "results"


def make_demonstration():
    """Accuracy of the demonstration's models and floor at some lengths."""
    found = read_demonstration()
    first = next(iter(found.values()))
    config = first["config"]
    lengths = [20, 25, 40, 60, 80, 100]
    rows = [
        (
            f"`{name}`",
            *_format_at(result["final"]["accuracy_by_length"], lengths),
            f"{result['final']['score']:.3f}",
            f"{result['train']['seconds']:.0f} s",
        )
        for name, result in found.items()
    ]
    rows.append(
        (
            "floor",
            *_format_at(first["floor_by_length"], lengths),
            f"{average_unseen_floor(first):.3f}",
            "",
        )
    )
    head = (
        f"trained on lengths {config['train_length']}; accuracy at length",
        *map(str, lengths),
        "mean over 21-100",
        "training",
    )
    return table(head, rows)


def read_demonstration():
    """Reads the results of both models of the demonstration, a dict."""
    return {
        path.parent.name: json.loads(path.read_text())
        for path in sorted(RESULTS.glob("demonstration/*/results.json"))
    }


def average_unseen_floor(result):
    """Averages the floor over the lengths above the trained ones."""
    return np.mean(
        [
            value
            for length, value in result["floor_by_length"].items()
            if int(length) > 20
        ]
    )


def make_train_step():
    """Training speed of every encoding relative to Keras and its plain form."""
    report = json.loads((RESULTS / "train_step.json").read_text())
    by_encoding = {}
    for row in report["rows"]:
        by_encoding.setdefault(row["encoding"], []).append(row)
    shapes = [
        f"{row['batch_size']} x {row['tokens']}"
        for row in next(iter(by_encoding.values()))
    ]
    rows = [
        (
            f"`{name}`",
            *(f"{row['ratio_to_keras']:.2f}" for row in found),
            *(
                f"{row['ratio_to_plain_form']:.2f}"
                if "ratio_to_plain_form" in row
                else ""
                for row in found
            ),
        )
        for name, found in by_encoding.items()
    ]
    head = (
        "relative steps per second",
        *(f"to Keras, {shape}" for shape in shapes),
        *(f"to the plain form, {shape}" for shape in shapes),
    )
    return table(head, rows)


def make_evidence():
    """Mean score of every encoding on every task, and the floors."""
    report = json.loads((RESULTS / "evidence.json").read_text())
    scores, floors = {}, {}
    for row in report["rows"]:
        scores.setdefault(row["encoding"], {}).setdefault(
            row["task"], []
        ).append(row["score"])
        floors.setdefault("tokens without positions", {})[row["task"]] = [
            row["floor"]
        ]
        floors.setdefault("positions without tokens", {})[row["task"]] = [
            row["position_only"]
        ]
    tasks = list(dict.fromkeys(row["task"] for row in report["rows"]))
    scores = {f"`{name}`": values for name, values in scores.items()}
    rows = [
        (name, *(f"{np.mean(values[task]):.2f}" for task in tasks))
        for name, values in {**scores, **floors}.items()
    ]
    head = ("mean accuracy at lengths 25-100", *tasks)
    return table(head, rows)


def make_long_attention():
    """Time and peak memory of attention, with and without chunks."""
    report = json.loads((RESULTS / "long_attention.json").read_text())
    lengths = sorted({row["length"] for row in report["rows"]})
    found: dict = {}
    for row in report["rows"]:
        name = f"`{row['encoding']}`"
        if row["chunk_size"] is None:
            name += ", without chunks"
        found.setdefault(name, {})[row["length"]] = (
            f"{row['seconds']:.1f} s, {row['peak_mebibytes'] / 1024:.1f} GiB"
        )
    rows = [
        (name, *(cells.get(length, "") for length in lengths))
        for name, cells in found.items()
    ]
    head = ("forward and backward pass; tokens", *(f"{n:,}" for n in lengths))
    return table(head, rows)


def make_generation():
    """Time of generation with and without a cache, and the ratio."""
    report = json.loads((RESULTS / "generation.json").read_text())
    rows = [
        (
            f"`{row['encoding']}`",
            str(row["batch_size"]),
            f"{row['cached']:.1f} s",
            f"{row['recomputed']:.1f} s",
            f"{row['speed_of_recomputing']:.0f}",
        )
        for row in report["rows"]
    ]
    head = (
        f"{report['new_tokens']} new tokens",
        "prompts",
        "with cache",
        "without cache",
        "speed-up",
    )
    return table(head, rows)


def make_plain_and_randomized():
    """Best accuracy of plain and randomized encodings, and published ones."""
    path = RESULTS / "plain_and_randomized" / "report.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = {(row["row"], row["column"]): row for row in rows}
    tasks = list(dict.fromkeys(row["row"] for row in rows))
    names = [name for task, name in found if task == tasks[0]]
    cells = []
    for name in names:
        if f"Randomized{name}" not in names:
            continue
        cells.append([f"`{name}`"])
        for task in tasks:
            plain, randomized = (
                found[task, each] for each in (name, f"Randomized{name}")
            )
            ours, published = (
                " → ".join(
                    f"{float(row[key]):.0f}" for row in (plain, randomized)
                )
                for key in ("maximum", "published")
            )
            gain = float(randomized["maximum"]) - float(plain["maximum"])
            ours = f"**{ours}**" if gain >= 10 else ours
            cells[-1].append(f"{ours} ({published})")
    return table(("best of two runs (published)", *tasks), cells)


def make_language():
    """Bits per byte of every encoding at each length of text."""
    rows = [row for row in read_language() if "-from-" not in row["run"]]
    lengths = list(rows[0]["bits_per_character_by_length"])
    cells = [
        (
            f"`{row['run']}`",
            *_format_at(row["bits_per_character_by_length"], lengths),
            f"{row['last_quarter'][lengths[-1]]:.2f}",
            f"{row['training_seconds'] / 60:.0f} min",
        )
        for row in rows
    ]
    head = (
        "bits per byte on held-out files; window",
        *(f"{int(length):,}" for length in lengths),
        f"last quarter of {int(lengths[-1]):,}",
        "training",
    )
    return table(head, cells)


def make_finetuning():
    """Loss of a model with RoPE that is continued with other encodings."""
    rows = {row["run"]: row for row in read_language()}
    lengths = list(rows["RoPE"]["loss_by_length"])
    kept = {"no fine-tuning": rows["RoPE"]}
    for name, row in rows.items():
        after, _, before = name.partition("-from-")
        if before:
            kept[f"fine-tuned with `{after}`"] = row
    cells = [
        (name, *(f"{row['loss_by_length'][n]:,.0f}" for n in lengths))
        for name, row in kept.items()
    ]
    head = (
        "trained with `RoPE`; nats per sequence of",
        *(f"{int(length):,}" for length in lengths),
    )
    return table(head, cells)


def make_images():
    """Accuracy and loss of every encoding at each size of images."""
    rows = json.loads((RESULTS / "images.json").read_text())["rows"]
    sizes = ",".join(rows[0][name] for name in ("train_size", "test_sizes"))
    cells = [
        (
            f"`{row['encoding']}`",
            *(
                f"{accuracy:.2f} / {loss:.2f}"
                for accuracy, loss in zip(
                    row["accuracy"].values(), row["loss"].values(), strict=True
                )
            ),
            f"{row['training_seconds'] / 60:.0f} min",
        )
        for row in rows
    ]
    head = ("accuracy / loss in nats", *sizes.split(","), "training")
    return table(head, cells)


def make_answers():
    """Share of right answers of every model within and beyond training."""
    rows = json.loads((RESULTS / "answers.json").read_text())["rows"]
    cells, last = [], len(rows) - 1
    for number, row in enumerate(rows):
        longest = int(row["train_length"].split("-")[1])
        task = f"{row['task']}, 1 to {longest}"
        minutes = f"{row['training_seconds'] / 60:.0f} min"
        right = row["generated_exact_match_by_length"]
        variant = f"`{row['variant']}`"
        cells.append((task, variant, *_format_answers(right, longest), minutes))
        if number == last or rows[number + 1]["task"] != row["task"]:
            floor = _format_answers(row["floor_by_length"], longest)
            cells.append((task, "most frequent answer", *floor, ""))
    head = (
        "task, trained lengths",
        "encoding or scratchpad",
        "exact match at trained lengths",
        "at unseen lengths",
        "at the shortest unseen length",
        "at the longest",
        "training",
    )
    return table(head, cells)


ADDED = ("10", "20", "50", "100", "200", "500")
"""Numbers of digits in the tables of sums."""


def make_addition():
    """Share of right sums of either kind of positions, by number of digits."""
    found = read_variants("addition.json")
    far = list(found["coupled"][0]["far"][WRITTEN])
    cells = [
        (
            "ordinal positions",
            *_format_medians([run[WRITTEN] for run in found["ordinal"]], ADDED),
            *("" for _ in far),
            _format_minutes(found["ordinal"]),
        )
    ]
    near, further = (
        [_average_kinds(run["by_kind"]) for run in runs]
        for runs in (
            found["coupled"],
            [run["far"] for run in found["coupled"]],
        )
    )
    for part, name in enumerate(("uniform digits", "structured digits")):
        cells.append(
            (
                f"coupled positions, {name}",
                *_format_medians([run[part] for run in near], ADDED),
                *_format_medians([run[part] for run in further], far),
                _format_minutes(found["coupled"]),
            )
        )
    head = (
        "trained on 1-10 digits; exact match at",
        *ADDED,
        *(f"{int(digits):,}" for digits in far),
        "training",
    )
    return table(head, cells)


def make_addition_kinds():
    """Share of right sums of each kind, of all seeds, by number of digits."""
    runs = read_variants("addition.json")["coupled"]
    shown = ["1", "3", "5", *ADDED]
    cells = [
        (
            kind.replace("_", " "),
            *(
                f"{np.mean([run['by_kind'][kind][n] for run in runs]):.3f}"
                for n in shown
            ),
        )
        for kind in runs[0]["by_kind"]
    ]
    return table(("exact match; digits", *shown), cells)


def make_addition_changes():
    """Share of right sums with coupled positions and one change each."""
    cells = [
        (
            "as in the demonstration" if variant == "coupled" else variant,
            *(_format_kinds(runs[:1], digits) for digits in ADDED),
        )
        for variant, runs in read_variants("addition.json").items()
        if variant != "ordinal"
    ]
    return table(("exact match; digits", *ADDED), cells)


def make_kinds():
    """Right answers to each kind of problem, of methods of the frontier."""
    rows = json.loads((RESULTS / "kinds.json").read_text())["rows"]
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    grouped: dict = {}
    for row in sorted(rows, key=lambda row: tasks.index(row["task"])):
        key = row["task"], row["method"], row["training"]
        grouped.setdefault(key, []).append(row)
    shown = ("10", "20", "50", "100")
    cells = [
        (
            task,
            f"`{method}`" if method[0].isupper() else method,
            training,
            str(len(runs)),
            *(
                _format_kinds(runs, digits) + _format_worst(runs, digits)
                for digits in shown
            ),
        )
        for (task, method, training), runs in grouped.items()
    ]
    head = (
        "task",
        "method",
        "training digits",
        "seeds",
        *(f"at {n}" for n in shown),
    )
    return table(head, cells)


def read_variants(name):
    """Reads the rows of each variant of a report, a dict of lists."""
    found: dict = {}
    for row in json.loads((RESULTS / name).read_text())["rows"]:
        found.setdefault(row["variant"], []).append(row)
    return found


def _average_kinds(by_kind):
    """Finds the shares of uniform and, on average, of structured problems.

    Returns:
        A pair of dicts from lengths to shares.
    """
    structured = [by for kind, by in by_kind.items() if kind != UNIFORM]
    return by_kind[UNIFORM], {
        n: np.mean([by[n] for by in structured]) for n in structured[0]
    }


def _format_kinds(runs, length):
    """Formats the shares of uniform and of structured problems of some runs."""
    pairs = [_average_kinds(run["by_kind"]) for run in runs]
    return " / ".join(
        f"{np.mean([share[length] for share in shares]):.2f}"
        for shares in zip(*pairs, strict=True)
    )


def _format_worst(runs, length):
    """Names the kind with the lowest share, unless all answers are right."""
    means = {
        kind: np.mean([run["by_kind"][kind][length] for run in runs])
        for kind in runs[0]["by_kind"]
    }
    worst = min(means, key=means.get)
    if means[worst] == 1:
        return ""
    return f" ({worst.replace('_', ' ')} {means[worst]:.2f})"


def _format_minutes(runs):
    minutes = np.median([run["training_seconds"] for run in runs]) / 60
    return f"{minutes:.0f} min"


def make_frontier():
    """Mean share of right answers at unseen lengths, by method and task."""
    tasks = read_frontier()
    methods = list(
        dict.fromkeys(name for task in tasks.values() for name in task)
    )
    best = {
        task: max(_median(runs, _score) for runs in methods_of.values())
        for task, methods_of in tasks.items()
    }
    cells = []
    for method in methods:
        row = [f"`{method}`" if method[0].isupper() else method]
        for task, methods_of in tasks.items():
            runs = methods_of.get(method)
            if runs is None:
                row.append("")
                continue
            text = f"{_median(runs, _score):.2f}"
            if len(runs) > 1:
                scores = sorted(map(_score, runs))
                text += f" ({scores[0]:.2f}-{scores[-1]:.2f})"
            if _median(runs, _score) == best[task] > 0:
                text = f"**{text}**"
            if _median(runs, _trained) < LEARNED:
                text += " \\*"
            row.append(text)
        cells.append(row)
    floors = [
        f"{max(run['floor'] for runs in task.values() for run in runs):.2f}"
        for task in tasks.values()
    ]
    cells.append(["floor", *floors])
    return table(("mean over lengths 15-100", *tasks), cells)


def make_frontier_lengths():
    """Share of right answers by length: each task's best, and baselines."""
    shown = ["10", "15", "20", "30", "50", "100"]
    cells = []
    for task, methods in read_frontier().items():
        several = {
            name: runs for name, runs in methods.items() if len(runs) > 1
        }
        ranked = sorted(
            several,
            key=lambda name: _median(several[name], _score),
            reverse=True,
        )
        for method in ranked:
            runs = several[method]
            shares = _format_medians([get_shares(run) for run in runs], shown)
            minutes = np.median([run["training_seconds"] for run in runs]) / 60
            name = f"`{method}`" if method[0].isupper() else method
            cells.append((task, name, *shares, f"{minutes:.1f} min"))
    head = ("task", "method", *(f"at {n}" for n in shown), "training")
    return table(head, cells)


LEARNED = 0.9
"""Least share of right answers at trained lengths of a model that learned."""


def read_frontier():
    """Reads the rows of each method of each task, dicts of dicts of lists."""
    rows = json.loads((RESULTS / "frontier.json").read_text())["rows"]
    found: dict = {}
    for row in rows:
        of_task = found.setdefault(row["task"], {})
        of_task.setdefault(row["method"], []).append(row)
    return found


def get_shares(row):
    """Returns the exact match, or the accuracy, of a run at each length."""
    (name,) = (name for name in row if name.endswith("_by_length"))
    return row[name]


def _score(row):
    return row["score"]


def _trained(row):
    return float(np.mean([get_shares(row)[str(n)] for n in range(1, 11)]))


def _median(runs, measure):
    return float(np.median([measure(run) for run in runs]))


WRITTEN = "generated_exact_match_by_length"


def _format_medians(shares, lengths):
    """Formats medians at some lengths, and the lowest of several runs."""
    found = []
    for length in lengths:
        values = [of_run[length] for of_run in shares]
        lowest = f" ({min(values):.3f})" if len(values) > 1 else ""
        found.append(f"{np.median(values):.3f}{lowest}")
    return found


def _format_answers(by_length, longest):
    """Formats means at trained and unseen lengths, and those at two lengths."""
    by_length = {int(length): share for length, share in by_length.items()}
    unseen = [length for length in by_length if length > longest]
    trained = [length for length in by_length if length <= longest]
    return [
        f"{np.mean([by_length[length] for length in lengths]):.2f}"
        for lengths in (trained, unseen, [min(unseen)], [max(unseen)])
    ]


def read_language():
    """Reads the rows of the report on text."""
    return json.loads((RESULTS / "language.json").read_text())["rows"]


def _format_at(by_length, lengths):
    return [f"{by_length[str(length)]:.2f}" for length in lengths]


TABLES = {
    "demonstration": make_demonstration,
    "train_step": make_train_step,
    "evidence": make_evidence,
    "long_attention": make_long_attention,
    "generation": make_generation,
    "language": make_language,
    "finetuning": make_finetuning,
    "images": make_images,
    "answers": make_answers,
    "addition": make_addition,
    "plain_and_randomized": make_plain_and_randomized,
    "addition_changes": make_addition_changes,
    "addition_kinds": make_addition_kinds,
    "kinds": make_kinds,
    "frontier": make_frontier,
    "frontier_lengths": make_frontier_lengths,
}
"""Functions that make a table, by the name in its marker."""
