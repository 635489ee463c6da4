"""Figures in the sentences of pages, computed from the reports of benchmarks.

A comment `<!-- figures` lists one Python expression a line, and ends with
`-->`. Its values replace the decimal numbers in the sentences behind it, in
order, up to the next such comment. A value may be a sequence of numbers; an
expression may begin with a format, as in `.1f: 0.25 * 6`, and a number that no
report has stands for itself.

>>> print(replace_figures('''<!-- figures
... max(0.25, 0.5)
... -->
... Not 0.1 of `0.2` and 3.'''))
<!-- figures
max(0.25, 0.5)
-->
Not 0.50 of `0.2` and 3.
"""

import json
import math
import re
import statistics

import numpy as np

from benchmarks.result_tables import RESULTS, get_shares

COMMENT = re.compile(r"(<!-- figures\n)(.*?)(-->)", re.S)
NUMBER = re.compile(r"(?<![\w.,])\d+\.\d+(?!\w|\.\d)")
NO_SENTENCE = re.compile(
    r"^```.*?^```$|<!--.*?-->|^\|.*?$|`[^`]*`|\]\([^)]*\)", re.S | re.M
)
"""Code, comments, rows of tables and targets of links."""


def replace_figures(text):
    """Replaces the figures behind every comment of a page.

    Raises:
        ValueError: If a comment has more or fewer figures than there are.
    """
    before, *parts = COMMENT.split(text)
    found = [before]
    for begin, listed, end, behind in zip(*[iter(parts)] * 4, strict=True):
        figures = [
            figure
            for line in listed.strip().split("\n")
            for figure in compute_figures(line)
        ]
        found += [begin, listed, end, _write(behind, figures, listed)]
    return "".join(found)


def compute_figures(line):
    """Computes the figures of a line of a comment, a list of str."""
    spec, expression = re.fullmatch(r"(?:(\.\df): )?(.*)", line).groups()
    if re.fullmatch(r"[\d.]+", expression):
        return [expression]
    value = eval(expression, NAMES)
    values = value if np.iterable(value) else [value]
    return [format(each, spec or ".2f") for each in values]


def _write(text, figures, listed):
    hidden = [match.span() for match in NO_SENTENCE.finditer(text)]
    numbers = [
        match
        for match in NUMBER.finditer(text)
        if not any(start <= match.start() < end for start, end in hidden)
    ]
    if len(numbers) != len(figures):
        raise ValueError(
            f"{len(figures)} figures, but {len(numbers)} numbers "
            f"({', '.join(match[0] for match in numbers)}): "
            f"{' '.join(listed.split(chr(10))).strip()}"
        )
    for match, figure in reversed(list(zip(numbers, figures, strict=True))):
        text = text[: match.start()] + figure + text[match.end() :]
    return text


def read(report):
    """Reads a report of a benchmark."""
    return json.loads((RESULTS / f"{report}.json").read_text())


def rows(report, **values):
    """Finds the rows of a report that have these values.

    Raises:
        ValueError: If there is none.
    """
    found = [
        row for row in read(report)["rows"] if values.items() <= row.items()
    ]
    if not found:
        raise ValueError(f"{report} has no row with {values}.")
    return found


def row(report, **values):
    """Finds the row of a report that has these values."""
    (found,) = rows(report, **values)
    return found


def exact_match(task, method, length, choose=statistics.median):
    """Exact match of the seeds of a method in the report `frontier`."""
    return choose(
        each["exact_match_by_length"][str(length)]
        for each in rows("frontier", task=task, method=method)
    )


def structured(task, method, length):
    """Mean exact match over the kinds of problems that are not uniform."""
    found = row("kinds", task=task, method=method, training="uniform")
    return statistics.mean(
        by_length[str(length)]
        for kind, by_length in found["by_kind"].items()
        if kind != "uniform"
    )


def score(task, method, *lengths, choose=statistics.median):
    """Accuracy of the seeds of a method in the report `published_tasks`."""
    return choose(
        statistics.mean(get_shares(each)[str(length)] for length in lengths)
        for each in rows("published_tasks", task=task, method=method)
    )


def scores(task, *lengths, without=(), choose=statistics.median):
    """Accuracy of each method, by its name, in `published_tasks`."""
    names = {each["method"] for each in rows("published_tasks", task=task)}
    return {
        name: score(task, name, *lengths, choose=choose)
        for name in sorted(names - set(without))
    }


def best(task, *lengths, without=(), choose=statistics.median):
    """Best accuracy of a method in `published_tasks`."""
    found = scores(task, *lengths, without=without, choose=choose)
    return max(found.values())


def at_least(value):
    """Rounds a lower bound down to hundredths."""
    return math.floor(100 * value) / 100


def at_most(value):
    """Rounds an upper bound up to hundredths."""
    return math.ceil(100 * value) / 100


def of_seed(task, method, seed, length):
    """Accuracy of one run in `published_tasks`."""
    found = row("published_tasks", task=task, method=method, seed=seed)
    return get_shares(found)[str(length)]


def written(task, variant, length):
    """Exact match of written answers in the report `answers`."""
    found = row("answers", task=task, variant=variant)
    return found["generated_exact_match_by_length"][str(length)]


def demonstration(encoding):
    """Accuracy by length of a run of the demonstration."""
    path = RESULTS / "demonstration" / encoding / "results.json"
    return json.loads(path.read_text())["final"]["accuracy_by_length"]


def bits(encoding, length):
    """Bits per byte in the report `language`."""
    found = row("language", run=encoding)["bits_per_character_by_length"]
    return found[str(length)]


def palindromes():
    """Exact match of palindromes with coupled positions and near keys."""
    return [
        row("kinds", task=task, method="coupled near keys", training=training)[
            "by_kind"
        ]["palindrome"][length]
        for task in ("copy", "reverse", "parity")
        for training in ("uniform", "structured")
        for length in ("10", "20", "50", "100")
    ]


def overhead(encoding, what):
    """What a model costs in the report `overhead`, in units of Keras'."""
    return row("overhead", encoding=encoding)[f"{what}_of_keras"]


def time(recipe, length):
    """Time of attention in the report `long_attention`; NoPE has 1."""
    found = row("long_attention", recipe=recipe)["by_length"]
    return found[str(length)]["time_of_nope"]


def memory(recipe, length):
    """Memory of attention in the report `long_attention`, in GiB."""
    found = row("long_attention", recipe=recipe)["by_length"]
    return found[str(length)]["peak_mebibytes"] / 1024


def speed_of_example():
    """Speed of the published example, in units of the published code's."""
    seconds = {
        job["program"]: job["seconds"] for job in read("published_code")["jobs"]
    }
    return seconds["published"] / seconds["ours"]


def speeds_of_peer(encoding):
    """Lowest and highest speed in units of KerasHub's."""
    speeds = [
        each["speed_of_peer"]
        for each in rows("encoding_layers", encoding=encoding)
    ]
    return min(speeds), max(speeds)


def losses(recipe):
    """Losses of SmolLM2 by position."""
    found = row("smollm2", recipe=recipe)["nats_per_token_by_position"]
    return list(found.values())


def digits(recipe, least, most):
    """Digit accuracy of numbers so many tokens back."""
    return statistics.mean(
        answer["digits"] / 5
        for answer in row("smollm2", recipe=recipe)["answers"]
        if answer["tokens"] > 8192
        and least <= answer["tokens"] - answer["comment"] < most
    )


def of_bytes(recipe, length):
    """Loss of the small Llama in the report `retrofit`."""
    found = row("retrofit", recipe=recipe)["nats_per_byte_by_length"]
    return found[str(length)]


LISTS = {
    "UNSEEN": (40, 80, 200, 1280),
    "ANSWERS": ("addition", "copy", "reverse", "parity"),
    "COPYING": ("DAPE", "RandomizedRelativeEncoding", "FIRE", "LogKERPLE"),
    "COPYING_SYMBOLS": ("stick-breaking", "BAM", "ASEntmax"),
    "FINDING": (
        *("ASEntmax", "BAM", "DAPE", "NAPE", "LogKERPLE"),
        *("stick-breaking", "forgetting"),
    ),
    # The first six add a bias.
    "RECALLING": (
        *("FIRE", "LogKERPLE", "DAPE", "BAM", "NAPE", "ASEntmax"),
        *("stick-breaking", "forgetting"),
    ),
    "LEARNED_BIASES": (
        *("ClippedBias", "PowerKERPLE", "LogKERPLE", "BAM", "T5Bias"),
    ),
    # Added to embeddings, rotations and fixed biases.
    "CHEAP": (
        *("SinusoidalEncoding", "LearnedEncoding", "SHAPE", "CAPE", "RoPE"),
        *("NTKRoPE", "YaRN", "Llama3RoPE", "LongRoPE", "XPos", "WarpedRoPE"),
        *("SelectiveRoPE", "ALiBi", "HardALiBi", "NAPE", "Sandwich"),
        *("RandomizedSinusoidalEncoding", "RandomizedLearnedEncoding"),
        *("RandomizedRoPE", "RandomizedYaRN", "RandomizedALiBi"),
        "RandomizedSandwich",
    ),
}
"""Lengths, tasks and methods that sentences are about."""

NAMES = {
    **LISTS,
    "np": np,
    "mean": statistics.mean,
    "median": statistics.median,
    **{
        function.__name__: function
        for function in (
            *(read, rows, row, exact_match, structured),
            *(score, scores, best, at_least, at_most, of_seed, written),
            *(demonstration, bits, palindromes, overhead, time, memory),
            *(speed_of_example, speeds_of_peer, losses, digits, of_bytes),
        )
    },
}
"""What expressions may use, beside the built-in functions."""
