"""Compares runs: one plot of their curves, one table, and all numbers.

    python -m trainers.compare RUN RUN ...

RUN is the working directory of a run that has finished, or a file of
`trainers.evaluate`. Runs that differ only in their seed are one curve, their
mean. A curve is labelled with what differs from the others. All runs must be of
one problem, on the same data, and scored at the same lengths; `python -m
trainers.report` shows several problems in one table.

At the end stands which setting is best, or that no difference is seen: a t test
of the scores at the level of 5%, corrected for the number of settings, in which
the deviation of a seed is pooled over them. It needs two seeds of a setting.
"""

import dataclasses
import itertools
import os
import pathlib

from keras_lengen.evaluation import Estimate
from trainers.engine.problem import average_unseen
from trainers.errors import ConfigError
from trainers.options.command import run
from trainers.options.option import check_options, option, options
from trainers.records.files import read_bytes, replacing, writing
from trainers.records.markdown import code, table
from trainers.records.measurements import (
    list_differing,
    list_measurements,
    make_csv,
)
from trainers.records.opened_run import (
    are_of_other_data,
    make_problem,
    registered,
)
from trainers.records.plot import plot_results
from trainers.records.results import choose_metric, find_floor, find_reach
from trainers.records.seeds import (
    choose_best,
    estimate_score,
    group_seeds,
    join_names,
    merge_seeds,
    name_seeds,
)
from trainers.records.workdir import naming_damage, read_results

LENGTHS = 8
"""Most lengths with a column of their own."""

NAMED = 3
"""Most labels that a sentence names."""

LONGEST_LABEL = 60
"""Most characters of a label of several values, without a path."""

SAME = ("task", "dataset", "split")
"""Flags of trainers that say what is measured."""


@dataclasses.dataclass(frozen=True)
class CompareConfig:
    """Flags of this command."""

    output: str = option(
        "",
        "Directory for comparison.md, .csv and .png, whose names get a number "
        "where those of other runs are (empty: the directory of all "
        "runs).",
        is_path=True,
    )

    def validate(self):
        """Raises `ConfigError` for the first value that cannot work."""
        check_options(self)


def main(config, *runs):
    """Compares the results of runs."""
    paths = [pathlib.Path(os.path.expanduser(text)) for text in runs]
    results = [read(path) for path in paths]
    for path, found in zip(paths[1:], results[1:], strict=True):
        check_same_problem(paths[0], results[0], path, found)
    metric = results[0]["score_metric"]
    # If runs were trained on different lengths, the plot shows the longest.
    problem = max(map(make_problem, results), key=lambda p: p.longest_trained)
    groups = group_seeds(results)
    merged = [merge_seeds([results[n] for n in g], problem) for g in groups]
    named = [
        paths[g[0]] if len(g) == 1 else find_common([paths[n] for n in g])
        for g in groups
    ]
    labelled = dict(zip(find_labels(named, merged), merged, strict=True))
    directory = pathlib.Path(config.output or find_common(paths))
    with writing(directory, "nothing was written"):
        directory.mkdir(parents=True, exist_ok=True)
    text = make_table(labelled, metric, problem)
    _, score = choose_metric(results, metric)
    scores = {
        label: tuple(results[n]["final"][score] for n in group)
        for label, group in zip(labelled, groups, strict=True)
    }
    verdict = describe_best(scores, problem)
    names = name_runs(paths, directory)
    compared = f"Runs: {', '.join(map(code, sorted(names)))}"
    path, is_same = choose_path(
        (directory / f"comparison{ending}.md" for ending in list_endings()),
        compared,
    )
    with replacing(path) as file:
        parts = filter(None, (text, verdict, compared))
        file.write(("\n\n".join(parts) + "\n").encode())
    with replacing(path.with_suffix(".csv")) as file:
        file.write(make_csv(dict(zip(names, results, strict=True))))
    print(text)
    print(f"table{', replaced' * is_same}: {path}")
    # Matplotlib would read what is between two dollar signs as a formula.
    shown = {label.replace("$", r"\$"): of for label, of in labelled.items()}
    plot_results(path.with_suffix(".png"), shown, problem)
    if verdict:
        print(verdict)


def read(path):
    """Reads the results of a run or of an evaluation."""
    # `Path.is_file` raises for a path that is too long.
    file = path if os.path.isfile(path) else path / "results.json"
    found = read_results(file)
    if found is None:
        raise ConfigError(
            f"{path} has no results.json: is it a run, and has it finished?"
        )
    with naming_damage(file):
        _check_complete(found, make_problem(found, file))
    return found


def _check_complete(found, problem):
    """Raises what a missing number of results would raise later."""
    final, best = found["final"], found.get("best", {})
    metric, score = choose_metric([found], found["score_metric"])
    for name in {metric, found["score_metric"]}:
        for length, value in final[f"{name}_by_length"].items():
            int(length), float(value)
    for number in (final[score], final["score"], best.get(score, 0)):
        float(number)
    int(final["step"])
    for name in problem.floor_labels:
        found[f"{name}_by_length"].items()


def check_same_problem(first, results, path, found):
    """Raises `ConfigError` unless two results can stand in one table.

    Args:
        first: `pathlib.Path` of the first run.
        results: Dict, its `results.json`.
        path: `pathlib.Path` of another run.
        found: Dict, its `results.json`.
    """
    both = results, found
    flags = [
        {"trainer": of["trainer"], "metric": of["score_metric"], **of["config"]}
        for of in both
    ]
    for name in ("trainer", "metric", *SAME):
        ours, theirs = (of.get(name) for of in flags)
        if ours != theirs:
            # Which has one metric, too.
            other = ", or report several by trainers.report"
            raise ConfigError(
                f"{first} and {path} are of different problems ({name} {ours} "
                f"and {theirs}): compare runs of one problem"
                f"{other if name in SAME else ''}."
            )
    if are_of_other_data(*both):
        raise ConfigError(
            f"{first} and {path} are on different data: compare runs on the "
            "same data."
        )
    scored = [_list_scored(of) for of in both]
    if scored[0] != scored[1]:
        problem = make_problem(results)
        ours, theirs = (_shorten(lengths, problem) for lengths in scored)
        kind = problem.length_name
        raise ConfigError(
            f"{first} is scored at {kind}s {ours}, and {path} at {theirs}: "
            f"measure both at the same {kind}s by `python -m trainers.evaluate "
            f"RUN --test_{kind}s=...`, and compare the files that it writes."
        )


def _list_scored(results):
    """Returns the lengths that the score is the mean over, list of int."""
    lengths = sorted(
        map(int, results["final"][f"{results['score_metric']}_by_length"])
    )
    longest = make_problem(results).longest_trained
    return [length for length in lengths if length > longest] or lengths


def _shorten(lengths, problem):
    """Describes lengths, all of them or the first and the last ones."""
    shown = [problem.describe_length(length) for length in lengths]
    if len(shown) > 4:
        shown = [*shown[:2], "...", *shown[-2:]]
    return ", ".join(shown)


def find_labels(paths, results):
    """Returns a label for each run: the values that differ.

    The path stands beside a label that several runs have, or that has not all
    values.
    """
    known = options(registered()[results[0]["trainer"]].config)
    differing = list_differing(results)
    labels = [
        _join(
            [
                _describe(name, found["config"].get(name, known[name].default))
                for name in differing
            ]
        )
        for found in results
    ]
    found = [
        label
        if is_whole and label and labels.count((label, True)) == 1
        else " ".join(filter(None, [label, f"({path})"]))
        for (label, is_whole), path in zip(labels, paths, strict=True)
    ]
    # Names of files need not be UTF-8.
    return [label.encode(errors="replace").decode() for label in found]


def _join(parts):
    """Returns as many parts as a label has room for, and whether it is all."""
    parts = list(filter(None, parts))
    shown = parts[:1]
    for part in parts[1:]:
        if len(", ".join([*shown, part])) > LONGEST_LABEL:
            return ", ".join([*shown, "..."]), False
        shown.append(part)
    return ", ".join(shown), True


def _describe(name, value):
    """Returns the part of a label for a value, a str."""
    if name == "encoding":
        return value
    if name == "initialize_from":
        # RUN/checkpoints/checkpoint-100.npz
        return (
            value and f"from {pathlib.Path(value).absolute().parents[1].name}"
        )
    return f"no {name}" if value == "" else f"{name}={value}"


def find_common(paths):
    """Returns the deepest directory that all paths are in."""
    above = [set(path.absolute().parents) for path in paths]
    return max(set.intersection(*above), key=lambda path: len(path.parts))


def name_runs(paths, directory):
    """Returns the names of runs: their paths relative to a directory."""
    # Names of files need not be UTF-8.
    return [
        os.path.relpath(path, directory).encode(errors="replace").decode()
        for path in paths
    ]


def list_endings():
    """Yields endings of the names of further reports in a directory."""
    yield ""
    yield from (f"-{number}" for number in itertools.count(2))


def choose_path(paths, line):
    """Chooses a file that replaces no report of other runs.

    Args:
        paths: Iterable of `pathlib.Path`. Files that the report may be.
        line: str. The line that says which runs the report shows.

    Returns:
        The first path without a report, or with one that has the line, and
        whether it is there; `None` if there is none.
    """
    for path in paths:
        found = read_bytes(path)
        if found is None or line.encode() in found.splitlines():
            return path, found is not None
    return None


def make_table(labelled, metric, problem):
    """Returns a Markdown table of the metric and the score of each run.

    Args:
        labelled: Dict from labels to results.
        metric: str. Name of the metric.
        problem: The `Problem` of the first run.
    """
    metric, score = choose_metric(labelled.values(), metric)
    curves = {
        label: {
            each.length: Estimate(each.value, each.low, each.high)
            for each in list_measurements(found)
            if each.metric == metric
        }
        for label, found in labelled.items()
    }
    common = sorted(set.intersection(*map(set, curves.values())))
    if len(common) > LENGTHS:
        spaced = [n * (len(common) - 1) / (LENGTHS - 1) for n in range(LENGTHS)]
        common = [common[round(n)] for n in spaced]
    rows = []
    for label, found in labelled.items():
        best = found.get("best", {}).get(score)
        rows.append(
            (
                code(label),
                *(_show(curves[label][n]) for n in common),
                _show(estimate_score(found, problem)),
                "" if best is None else f"{best:.4g}",
                f"{found['final']['step']:,.0f}",
            )
        )
    named = map(problem.describe_length, common)
    first = f"{metric} at {problem.length_name}"
    head = (first, *named, score.replace("_", " "), "best score", "steps")
    floor = find_floor(next(iter(labelled.values())), problem)
    if floor:
        head += ("above the floor up to",)
        reached = [find_reach(of, problem) for of in labelled.values()]
        rows = [
            (*row, problem.describe_length(reach) if reach else "nowhere")
            for row, reach in zip(rows, reached, strict=True)
        ]
        mean = average_unseen(floor, problem.longest_trained)
        values = map(floor.get, common)
        shown = ("" if v is None else f"{v:.4g}" for v in values)
        rows.append(("floor", *shown, f"{mean:.4g}", "", "", ""))
    return table(head, rows)


def _show(estimate):
    value, low, high = estimate
    return f"{value:.4g}" + (
        "" if low is None else f" ({low:.3g} to {high:.3g})"
    )


def describe_best(scores, problem):
    """Says which setting is best, or that no difference is seen.

    Args:
        scores: Dict from labels to tuples of float, the scores of the seeds.
        problem: Their `Problem`.

    Returns:
        str; `""`: there is only one setting.
    """
    if len(scores) == 1:
        return ""
    best = choose_best(
        scores, higher_is_better=problem.metrics[0].higher_is_better
    )
    seeds = name_seeds(scores.values())
    names = [code(label) for label in best]
    if seeds == "one seed":
        return (
            f"Best score: {names[0]}. One seed of each says little about the "
            "settings: train at least two."
        )
    if len(best) == 1:
        return f"Best: {names[0]} (t test, {seeds} of each)."
    if len(best) > NAMED:
        names = [*names[:NAMED], f"{len(best) - NAMED} more"]
    return (
        f"No difference seen between {join_names(names, 'and')} with {seeds} "
        "of each."
    )


if __name__ == "__main__":
    run(CompareConfig, {}, main, operands="RUN...")
