"""Compares runs: one plot of their curves and one table.

    python -m trainers.compare RUN RUN ...

RUN is the working directory of a run that has finished, or a file of
`trainers.evaluate`. A curve is labelled with what differs from the other runs.
"""

import dataclasses
import os
import pathlib

from trainers.errors import ConfigError
from trainers.options.command import run
from trainers.options.option import check_options, option, options
from trainers.records.files import replacing, writing
from trainers.records.markdown import table
from trainers.records.opened_run import make_problem, registered
from trainers.records.plot import plot_results
from trainers.records.results import choose_metric
from trainers.records.workdir import read_results

LENGTHS = 8
"""Most lengths with a column of their own."""

LONGEST_LABEL = 60
"""Most characters of a label, without a path."""


@dataclasses.dataclass(frozen=True)
class CompareConfig:
    """Flags of this command."""

    output: str = option(
        "",
        "Directory for comparison.png and comparison.md; none: the directory "
        "that all runs are in.",
        is_path=True,
    )

    def validate(self):
        """Raises `ConfigError` for the first value that cannot work."""
        check_options(self)


def main(config, *runs):
    """Compares the results of runs."""
    paths = [pathlib.Path(os.path.expanduser(text)) for text in runs]
    results = [read(path) for path in paths]
    metric, *others = {found["score_metric"] for found in results}
    if others:
        raise ConfigError(
            f"the runs have different metrics, {', '.join([metric, *others])}: "
            "compare runs with the same one."
        )
    labelled = dict(zip(find_labels(paths, results), results, strict=True))
    problem = make_problem(results[0])
    directory = pathlib.Path(config.output or find_common(paths))
    with writing(directory, "nothing was written"):
        directory.mkdir(parents=True, exist_ok=True)
    text = make_table(labelled, metric, problem)
    print(text)
    path = directory / "comparison.md"
    with replacing(path) as file:
        file.write(f"{text}\n".encode())
    print(f"table: {path}")
    plot_results(directory / "comparison.png", labelled, problem)


def read(path):
    """Reads the results of a run or of an evaluation."""
    found = read_results(path if path.is_file() else path / "results.json")
    if found is None:
        raise ConfigError(
            f"{path} has no results.json: is it a run, and has it finished?"
        )
    return found


def find_labels(paths, results):
    """Returns a label for each run: the values that differ.

    The path stands beside a label that several runs have.
    """
    configs = [found["config"] for found in results]
    known = options(registered()[results[0]["trainer"]].config)
    differing = [
        name
        for name in configs[0]
        if name in known
        and known[name].changes_result
        and len({repr(config.get(name)) for config in configs}) > 1
    ]
    labels = [
        ", ".join(
            filter(
                None, (_describe(name, config.get(name)) for name in differing)
            )
        )
        for config in configs
    ]
    return [
        label
        if 0 < len(label) <= LONGEST_LABEL and labels.count(label) == 1
        else " ".join(filter(None, [label[:LONGEST_LABEL], f"({path})"]))
        for label, path in zip(labels, paths, strict=True)
    ]


def _describe(name, value):
    """Returns the part of a label for a value, a str."""
    if name == "encoding":
        return value
    if name == "initialize_from":
        # RUN/checkpoints/checkpoint-100.npz
        return (
            value and f"from {pathlib.Path(value).absolute().parents[1].name}"
        )
    return f"{name}={value}"


def find_common(paths):
    """Returns the deepest directory that all paths are in."""
    above = [set(path.absolute().parents) for path in paths]
    return max(set.intersection(*above), key=lambda path: len(path.parts))


def make_table(labelled, metric, problem):
    """Returns a Markdown table of the metric and the score of each run.

    Args:
        labelled: Dict from labels to results.
        metric: str. Name of the metric.
        problem: The `Problem` of the first run.
    """
    metric, score = choose_metric(labelled.values(), metric)
    curves = {
        label: found["final"][f"{metric}_by_length"]
        for label, found in labelled.items()
    }
    common = sorted(set.intersection(*map(set, curves.values())), key=int)
    if len(common) > LENGTHS:
        spaced = [n * (len(common) - 1) / (LENGTHS - 1) for n in range(LENGTHS)]
        common = [common[round(n)] for n in spaced]
    rows = []
    for label, found in labelled.items():
        best = found.get("best", {}).get(score)
        rows.append(
            (
                f"`{label}`",
                *(f"{curves[label][length]:.4g}" for length in common),
                f"{found['final'][score]:.4g}",
                "" if best is None else f"{best:.4g}",
                f"{found['final']['step']:,}",
            )
        )
    named = (problem.describe_length(int(length)) for length in common)
    first = f"{metric} at {problem.length_name}"
    scores = score.replace("_", " "), "best score"
    return table((first, *named, *scores, "steps"), rows)


if __name__ == "__main__":
    run(CompareConfig, {}, main, operands="RUN...")
