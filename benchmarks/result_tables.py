"""Makes the tables of results on the pages from the committed reports."""

import csv
import functools
import json
import pathlib

import numpy as np

from datasets.text_tasks.structured_digits import UNIFORM
from trainers.records.markdown import code, table

RESULTS = pathlib.Path(__file__).parent / "results"

WRITTEN = "generated_exact_match_by_length"

ADDED = ("10", "20", "50", "100", "200", "500")
"""Numbers of digits in the tables of sums."""

_OUR_READING = "yes (our reading)"

PUBLISHED_TASKS = {
    "recall": dict.fromkeys(
        ("mqar", "mqmtar", "needle", "variable_tracking"), _OUR_READING
    ),
    "state": dict.fromkeys(
        (
            *("flip_flop", "parity_check"),
            *("words_s3", "words_s3 trained longer", "words_a5", "words_s5"),
        ),
        "no",
    ),
    "order": {
        "unique_copy": "yes",
        "repeat_copy": "no",
        "unique_sort": "yes",
        "binary_addition": "no",
    },
    "counts": {
        "majority": "yes",
        "common_words": _OUR_READING,
        "frequent_words": _OUR_READING,
    },
}
"""Tasks of newer benchmarks, by the table that compares them, and whether
theory expects Transformers to generalize to all lengths. The docstrings of the
tasks say why."""

PUBLISHED_TRAINED = range(4, 21)
"""Their trained lengths."""

FAR = ("40", "80", "140", "200", "1280")
"""Unseen lengths of these tasks; strings of distinct symbols end at 140."""

LEARNED = 0.9
"""Least share of correct answers at trained lengths of a model that learned."""


def read_report(name):
    """Reads a report, a dict."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def read_rows(name):
    """Reads the rows of a report, a list of dicts."""
    return read_report(name)["rows"]


def group(rows, *keys):
    """Groups rows by the values of keys.

    Args:
        rows: Iterable of dicts.
        *keys: Names of entries of the rows.

    Returns:
        Dict from a value, or from a tuple of several, to a list of rows; the
        order is that of the rows.
    """
    found: dict = {}
    for row in rows:
        values = tuple(row[key] for key in keys)
        found.setdefault(values if keys[1:] else values[0], []).append(row)
    return found


def read_demonstration():
    """Reads the results of both models of the demonstration, a dict."""
    return {
        path.parent.name: json.loads(path.read_text())
        for path in sorted(RESULTS.glob("demonstration/*/results.json"))
    }


def read_comparison(name):
    """Reads the rows of each method of each task, dicts of dicts of lists."""
    tasks = group(read_rows(name), "task")
    return {task: group(rows, "method") for task, rows in tasks.items()}


def get_shares(row):
    """Returns the exact match, or the accuracy, of a run at each length."""
    (name,) = (name for name in row if name.endswith("_by_length"))
    return row[name]


def average_unseen_floor(result):
    """Averages the floor over the lengths above the trained ones."""
    floors = result["floor_by_length"].items()
    return np.mean([value for length, value in floors if int(length) > 20])


def average_kinds(by_kind):
    """Finds the shares of uniform and, on average, of structured problems.

    Returns:
        A pair of dicts from lengths to shares.
    """
    structured = [by for kind, by in by_kind.items() if kind != UNIFORM]
    return by_kind[UNIFORM], {
        n: np.mean([by[n] for by in structured]) for n in structured[0]
    }


def _average(rows, key):
    return float(np.mean([row[key] for row in rows]))


def _median(rows, measure):
    return float(np.median([measure(row) for row in rows]))


def _format_at(by_length, lengths):
    return [f"{by_length[str(length)]:.2f}" for length in lengths]


def _format_minutes(runs, digits=0):
    minutes = _median(runs, lambda run: run["training_seconds"]) / 60
    return f"{minutes:.{digits}f} min"


def _format_method(name):
    """Formats names that begin with a capital letter as code."""
    return code(name) if name[0].isupper() else name


def _format_medians(shares, lengths):
    """Formats medians at some lengths, and the lowest of several runs."""
    found = []
    for length in lengths:
        values = [of_run[length] for of_run in shares if length in of_run]
        if not values:
            found.append("")
            continue
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


def _format_kinds(runs, length):
    """Formats the shares of uniform and of structured problems of some runs."""
    pairs = [average_kinds(run["by_kind"]) for run in runs]
    return " / ".join(
        f"{_average(shares, length):.2f}" for shares in zip(*pairs, strict=True)
    )


def _average_kind(runs, kind, length):
    return _average([run["by_kind"][kind] for run in runs], length)


def _format_worst(runs, length):
    """Names the kind with the lowest share, unless all answers are right."""
    means = {
        kind: _average_kind(runs, kind, length) for kind in runs[0]["by_kind"]
    }
    worst = min(means, key=means.get)
    if means[worst] == 1:
        return ""
    return f" ({worst.replace('_', ' ')} {means[worst]:.2f})"


def make_demonstration():
    """Accuracy of the demonstration's models and floor at some lengths."""
    found = read_demonstration()
    first = next(iter(found.values()))
    config = first["config"]
    lengths = [20, 25, 40, 60, 80, 100]
    rows = [
        (
            code(name),
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


def make_train_step():
    """Training speed of every encoding relative to Keras and its plain form."""
    by_encoding = group(read_rows("train_step"), "encoding")
    shapes = [
        f"{row['batch_size']} x {row['tokens']}"
        for row in next(iter(by_encoding.values()))
    ]
    rows = [
        (
            code(name),
            *(
                f"{row[ratio]:.2f}" if ratio in row else ""
                for ratio in ("ratio_to_keras", "ratio_to_plain_form")
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
    rows = read_rows("evidence")
    tasks = group(rows, "task")
    cells = []
    for name, found in group(rows, "encoding").items():
        runs = group(found, "task")
        means = (_average(runs[task], "score") for task in tasks)
        cells.append((code(name), *(f"{mean:.2f}" for mean in means)))
    for name, key in (
        ("order-blind baseline", "floor"),
        ("input-blind baseline", "position_only"),
    ):
        floors = (f"{found[0][key]:.2f}" for found in tasks.values())
        cells.append((name, *floors))
    return table(("mean accuracy at lengths 25-100", *tasks), cells)


def make_long_attention():
    """Time of attention, relative to no encoding, and its peak memory."""
    report = read_report("long_attention")
    lengths = [str(length) for length in report["options"]["lengths"]]
    cells = []
    for row in report["rows"]:
        found = [row["by_length"][length] for length in lengths]
        times = [f"{each['time_of_nope']:.2f}" for each in found]
        if row["recipe"] == "NoPE":
            times = [f"{each['seconds']:.2f} s" for each in found]
        peaks = [f"{each['peak_mebibytes'] / 1024:.2f} GiB" for each in found]
        cells.append((code(row["recipe"]), *times, *peaks))
    lengths = [f"{int(length):,}" for length in lengths]
    head = (
        "forward and backward pass",
        *(f"time, {length} tokens" for length in lengths),
        *(f"memory, {length} tokens" for length in lengths),
    )
    return table(head, cells)


def make_published_code():
    """Training speed relative to the published code, by encoding."""
    cells = [
        (
            code(row["encoding"]),
            f"{row['published_steps_per_second']:.2f}",
            f"{row['ours_steps_per_second']:.2f}",
            f"{row['speed_of_published']:.2f}",
        )
        for row in read_rows("published_code")
    ]
    head = (
        "training steps per second, 128 x 41",
        *("published code", "this library", "ratio"),
    )
    return table(head, cells)


def make_published_job():
    """Time and memory of the published example, with either program."""
    names = {"published": "published code", "ours": "this library"}
    jobs = group(read_report("published_code")["jobs"], "program")
    cells = [
        (
            names[name],
            f"{_average(rows, 'seconds'):.0f} s",
            f"{_average(rows, 'processor_seconds'):.0f} s",
            f"{_average(rows, 'peak_gibibytes'):.1f} GiB",
        )
        for name, rows in jobs.items()
    ]
    head = ("the published example", "time", "processor time", "peak memory")
    return table(head, cells)


def make_generation():
    """Time of generation with and without a cache, and the ratio."""
    report = read_report("generation")
    rows = [
        (
            code(row["encoding"]),
            str(row["batch_size"]),
            f"{row['cached']:.1f} s",
            f"{row['recomputed']:.1f} s",
            f"{row['speed_of_recomputing']:.0f}",
        )
        for row in report["rows"]
    ]
    head = (
        f"{report['new_tokens']} new tokens",
        *("prompts", "with cache", "without cache", "speed-up"),
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
        cells.append([code(name)])
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
    rows = [row for row in read_rows("language") if "-from-" not in row["run"]]
    lengths = list(rows[0]["bits_per_character_by_length"])
    cells = [
        (
            code(row["run"]),
            *_format_at(row["bits_per_character_by_length"], lengths),
            f"{row['last_quarter'][lengths[-1]]:.2f}",
            _format_minutes([row]),
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
    rows = {row["run"]: row for row in read_rows("language")}
    lengths = list(rows["RoPE"]["loss_by_length"])
    kept = {"no fine-tuning": rows["RoPE"]}
    for name, row in rows.items():
        after, _, before = name.partition("-from-")
        if before:
            kept[f"fine-tuned with {code(after)}"] = row
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
    rows = read_rows("images")
    sizes = ",".join(rows[0][name] for name in ("train_size", "test_sizes"))
    cells = [
        (
            code(row["encoding"]),
            *(
                f"{accuracy:.2f} / {row['loss'][size]:.2f}"
                for size, accuracy in row["accuracy"].items()
            ),
            _format_minutes([row]),
        )
        for row in rows
    ]
    head = ("accuracy / loss in nats", *sizes.split(","), "training")
    return table(head, cells)


def make_answers():
    """Exact match of every model within and beyond training."""
    cells = []
    for task, rows in group(read_rows("answers"), "task").items():
        longest = int(rows[0]["train_length"].split("-")[1])
        label = f"{task}, 1 to {longest}"
        for row in rows:
            right = _format_answers(row[WRITTEN], longest)
            minutes = _format_minutes([row])
            cells.append((label, code(row["variant"]), *right, minutes))
        floor = _format_answers(rows[0]["floor_by_length"], longest)
        cells.append((label, "most frequent answer", *floor, ""))
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


def make_addition():
    """Exact match of either kind of positions, by number of digits."""
    found = group(read_rows("addition"), "variant")
    ordinal, coupled = found["ordinal"], found["coupled"]
    far = list(coupled[0]["far"][WRITTEN])
    near, further = (
        [average_kinds(run["by_kind"]) for run in runs]
        for runs in (coupled, [run["far"] for run in coupled])
    )
    cells = [
        (
            "ordinal positions",
            *_format_medians([run[WRITTEN] for run in ordinal], ADDED),
            *("" for _ in far),
            _format_minutes(ordinal),
        ),
        *(
            (
                f"coupled positions, {name}",
                *_format_medians([run[part] for run in near], ADDED),
                *_format_medians([run[part] for run in further], far),
                _format_minutes(coupled),
            )
            for part, name in enumerate(("uniform digits", "structured digits"))
        ),
    ]
    head = (
        "trained on 1-10 digits; exact match at",
        *ADDED,
        *(f"{int(digits):,}" for digits in far),
        "training",
    )
    return table(head, cells)


def make_addition_kinds():
    """Exact match of each kind, of all seeds, by number of digits."""
    runs = group(read_rows("addition"), "variant")["coupled"]
    shown = ["1", "3", "5", *ADDED]
    cells = [
        (
            kind.replace("_", " "),
            *(f"{_average_kind(runs, kind, n):.3f}" for n in shown),
        )
        for kind in runs[0]["by_kind"]
    ]
    return table(("exact match; digits", *shown), cells)


def make_addition_changes():
    """Exact match with coupled positions and one change each."""
    cells = [
        (
            "as in the demonstration" if variant == "coupled" else variant,
            *(_format_kinds(runs[:1], digits) for digits in ADDED),
        )
        for variant, runs in group(read_rows("addition"), "variant").items()
        if variant != "ordinal"
    ]
    return table(("exact match; digits", *ADDED), cells)


def make_multiplication():
    """Share of right products by length, and the worst kind."""
    cells = []
    for task, runs in group(read_rows("multiplication"), "task").items():
        shown = list(runs[0]["exact_match_by_length"])[-5:]
        shares = [run["exact_match_by_length"] for run in runs]
        cells.append(
            (
                code(task),
                str(len(runs)),
                *_format_medians(shares, shown),
                _format_worst(runs, shown[-2]).strip(" ()"),
                _format_minutes(runs),
            )
        )
    head = (
        *("task", "seeds", *(f"at {n}" for n in shown)),
        *(f"worst kind at {shown[-2]}", "training"),
    )
    return table(head, cells)


def make_multiplication_kinds():
    """Lowest exact match of all seeds, by kind and task."""
    found = group(read_rows("multiplication"), "task")
    kinds = dict.fromkeys(
        kind for runs in found.values() for kind in runs[0]["by_kind"]
    )
    cells = [
        (
            kind.replace("_", " "),
            *(
                " / ".join(
                    f"{min(run['by_kind'][kind][n] for run in runs):.2f}"
                    for n in ("20", "50", "100", "200")
                )
                if kind in runs[0]["by_kind"]
                else ""
                for runs in found.values()
            ),
        )
        for kind in kinds
    ]
    return table(("at 20 / 50 / 100 / 200 digits", *map(code, found)), cells)


def make_long_multiplication():
    """Share of right steps and products, by numbers of digits."""
    runs = read_rows("long_multiplication")
    shown = list(runs[0]["products"][UNIFORM])
    uniform, structured = zip(
        *(average_kinds(run["products"]) for run in runs), strict=True
    )
    steps = [run["exact_match_by_length"] for run in runs]
    cells = [
        (name, *_format_medians(shares, shown))
        for name, shares in (
            ("steps of products", steps),
            ("products, uniform digits", uniform),
            ("products, structured digits", structured),
        )
    ]
    return table(("exact match; digits of each number", *shown), cells)


def make_kinds():
    """Right answers to each kind of problem, of methods of the frontier."""
    shown = ("10", "20", "50", "100")
    cells = [
        (
            task,
            _format_method(method),
            training,
            str(len(runs)),
            *(
                _format_kinds(runs, digits) + _format_worst(runs, digits)
                for digits in shown
            ),
        )
        for task, rows in group(read_rows("kinds"), "task").items()
        for (method, training), runs in group(
            rows, "method", "training"
        ).items()
    ]
    head = (
        *("task", "method", "training digits", "seeds"),
        *(f"at {n}" for n in shown),
    )
    return table(head, cells)


def make_frontier():
    """Mean exact match at unseen lengths, by method and task."""
    return _compare_methods(
        read_comparison("frontier"), "mean over lengths 15-100", range(1, 11)
    )


def _compare_published(tasks):
    """Compares the methods on some tasks of newer benchmarks."""
    found = read_comparison("published_tasks")
    return _compare_methods(
        {task: found[task] for task in tasks if task in found},
        "mean over unseen lengths",
        PUBLISHED_TRAINED,
    )


def make_published_theory():
    """What theory expects of each task, and the best method."""
    shown, found = ["20", *FAR], read_comparison("published_tasks")
    cells = []
    for tasks in PUBLISHED_TASKS.values():
        for task, expected in tasks.items():
            if task not in found:
                continue
            methods = found[task]
            equal = _list_best(methods, PUBLISHED_TRAINED)
            first = max(
                equal or methods,
                key=lambda name: _median(methods[name], _get_score),
            )
            best = _format_method(first) if equal else "none"
            if len(equal) > 1:
                best += f" and {len(equal) - 1} more"
            runs = [*map(get_shares, methods[first])]
            shares = _format_medians(runs, shown)
            cells.append((task, expected, best, *shares))
    head = ("task", "theory", "best method", *(f"at {n}" for n in shown))
    return table(head, cells)


def _compare_methods(tasks, heading, trained):
    """Makes a table of the scores of methods, a column for each task.

    Args:
        tasks: Dict of dicts of lists, as of `read_comparison`.
        heading: str, of the first column.
        trained: The trained lengths.
    """
    methods = dict.fromkeys(name for found in tasks.values() for name in found)
    best = {task: _list_best(found, trained) for task, found in tasks.items()}
    cells = [
        (
            _format_method(method),
            *(
                _format_scores(found.get(method), method in best[task], trained)
                for task, found in tasks.items()
            ),
        )
        for method in methods
    ]
    floors = [_format_floor(found.values()) for found in tasks.values()]
    cells.append(("floor", *floors))
    return table((heading, *tasks), cells)


def _format_floor(methods):
    """Formats the largest floor of a task, if its metric has one."""
    floors = [run["floor"] for runs in methods for run in runs]
    return "" if None in floors else f"{max(floors):.2f}"


def _list_best(methods, trained):
    """Returns the methods of a task whose score is best, to two decimals.

    Args:
        methods: Dict from names to lists of rows.
        trained: The trained lengths, which a best method has learned.
    """
    scores = {
        name: round(_median(runs, _get_score), 2)
        for name, runs in methods.items()
        if _has_learned(runs, trained)
    }
    best = max(scores.values(), default=0)
    return [name for name, score in scores.items() if score == best > 0]


def _has_learned(runs, trained):
    return _median(runs, lambda row: _average_at(row, trained)) >= LEARNED


def _format_scores(runs, is_best, trained):
    """Formats the median and the range of a method's scores; bold: the best.

    A star marks a method that has not learned the trained lengths.
    """
    if runs is None:
        return ""
    middle = _median(runs, _get_score)
    text = f"{middle:.2f}"
    if len(runs) > 1:
        scores = sorted(map(_get_score, runs))
        text += f" ({scores[0]:.2f}-{scores[-1]:.2f})"
    if is_best:
        text = f"**{text}**"
    return text if _has_learned(runs, trained) else f"{text} \\*"


def make_frontier_lengths():
    """Exact match by length: each task's best, and baselines."""
    shown = ["10", "15", "20", "30", "50", "100"]
    return _compare_lengths(read_comparison("frontier"), shown)


def make_published_tasks():
    """Exact match by length to tasks of newer benchmarks."""
    return _compare_lengths(read_comparison("published_tasks"), ["20", *FAR])


def _compare_lengths(tasks, shown):
    cells = []
    for task, methods in tasks.items():
        several = [item for item in methods.items() if len(item[1]) > 1]
        several.sort(
            key=lambda item: _median(item[1], _get_score), reverse=True
        )
        for method, runs in several:
            shares = _format_medians([*map(get_shares, runs)], shown)
            minutes = _format_minutes(runs, digits=1)
            cells.append((task, _format_method(method), *shares, minutes))
    head = ("task", "method", *(f"at {n}" for n in shown), "training")
    return table(head, cells)


def make_retrofit():
    """Loss of a small Llama by length, with each recipe."""
    rows = read_rows("retrofit")
    lengths = list(rows[0]["nats_per_byte_by_length"])
    cells = [
        (
            row["recipe"],
            "yes" if row["trained"] else "no",
            *_format_at(row["nats_per_byte_by_length"], lengths),
        )
        for row in rows
    ]
    head = (
        "nats per byte; length",
        "short training",
        *(f"{int(length):,}" for length in lengths),
    )
    return table(head, cells)


def make_smollm2():
    """Loss of SmolLM2 by position, and digits it finds, with each recipe."""
    spans = ((0, 8192), (8192, 12288), (12288, 16384))
    cells = []
    for row in read_rows("smollm2"):
        seconds = row.get("training_seconds")
        cells.append(
            (
                row["recipe"],
                *(f"{average_loss(row, *span):.2f}" for span in spans),
                *(f"{find_digits(row, *span):.2f}" for span in spans),
                f"{seconds / 60:.0f} min" if seconds else "",
            )
        )
    head = (
        "recipe",
        *("nats per token, positions to 8,192", "to 12,288", "to 16,384"),
        *("digit accuracy, to 8,192 tokens back", "to 12,288", "to 16,384"),
        "training",
    )
    return table(head, cells)


def average_loss(row, first, last):
    """Averages the loss of SmolLM2 over positions from first to last."""
    losses = row["nats_per_token_by_position"].items()
    return np.mean([loss for end, loss in losses if first < int(end) <= last])


def find_digits(row, first, last):
    """Finds the share of digits that SmolLM2 gets right.

    Only questions after more tokens than it was trained on count.

    Args:
        row: Row of the report, a dict.
        first: int, smallest number of tokens between number and question.
        last: int, the number above the largest.
    """
    return np.mean(
        [
            answer["digits"] / 5
            for answer in row["answers"]
            if answer["tokens"] > 8192
            and first <= answer["tokens"] - answer["comment"] < last
        ]
    )


def _get_score(row):
    return row["score"]


def _average_at(row, lengths):
    return float(np.mean([get_shares(row)[str(n)] for n in lengths]))


TABLES = {
    **{
        function.__name__.removeprefix("make_"): function
        for function in (
            *(make_demonstration, make_train_step, make_evidence),
            *(make_published_code, make_published_job, make_long_attention),
            make_generation,
            make_plain_and_randomized,
            *(make_language, make_finetuning, make_images, make_answers),
            *(make_addition, make_addition_kinds, make_addition_changes),
            *(make_multiplication, make_multiplication_kinds),
            make_long_multiplication,
            *(make_kinds, make_frontier, make_frontier_lengths),
            *(make_published_tasks, make_published_theory),
            *(make_retrofit, make_smollm2),
        )
    },
    **{
        f"published_{name}": functools.partial(_compare_published, tasks)
        for name, tasks in PUBLISHED_TASKS.items()
    },
}
"""Functions that make a table, by the name in its marker."""
