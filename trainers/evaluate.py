"""Measures a trained model again: at other lengths, or at other positions.

    python -m trainers.evaluate RUN --test_lengths=21-200
    python -m trainers.evaluate RUN --evaluation=even --checkpoint=best
    python -m trainers.evaluate RUN/checkpoints/checkpoint-1500.npz

RUN is the working directory of a run, or one of its checkpoints. The results
are written to RUN/evaluations and printed beside the first ones of the run.
"""

import dataclasses
import functools
import pathlib
import re

from trainers.devices.workers import (
    check_same_data,
    describe,
    watch_workers,
)
from trainers.engine.backend import make_strategy
from trainers.engine.problem import average_unseen
from trainers.errors import ConfigError
from trainers.experiment import make_evaluation, measure_model
from trainers.options.command import run
from trainers.options.evaluation import with_evaluation
from trainers.options.fields import DeviceConfig, RunConfig
from trainers.options.layers import (
    build_encoding,
    range_of_run,
    with_max_position,
)
from trainers.options.option import option, options
from trainers.records.files import writing
from trainers.records.markdown import table
from trainers.records.opened_run import open_run
from trainers.records.plot import plot_results
from trainers.records.positions import describe_coverage, describe_positions
from trainers.records.progress import Line, show_evaluation
from trainers.records.results import (
    choose_metric,
    describe_floor,
    describe_results,
    describe_worst_kind,
    find_floor,
    name_scored,
    summarize,
)
from trainers.records.workdir import read_results, write_json

ROWS = 20
"""Most lengths that are printed; the file has all."""

NAMED = (
    *("test_lengths", "test_sizes", "evaluation"),
    *("evaluation_examples", "generated_examples"),
)
"""Flags that stand in the name of the file."""


@dataclasses.dataclass(frozen=True)
class EvaluateConfig(DeviceConfig, RunConfig):
    """Flags of this command."""

    test_lengths: str = option(
        "",
        "Lengths to evaluate in addition to the trained ones (empty: those of "
        "the run).",
    )
    test_sizes: str = option(
        "", "Sizes to evaluate instead, for a run that is trained on images."
    )
    evaluation_examples: int = option(
        0, "Number of examples of each length; 0: as many as the run.", least=0
    )
    generated_examples: int = option(
        0,
        "Number of answers to generate at each length, for a run that is "
        "trained on answers; 0: as many as the run.",
        least=0,
    )


def main(config, text):
    """Evaluates a run or a checkpoint."""
    opened = open_run(text, config.checkpoint, config.data_dir)
    given = {name: getattr(config, name) for name in NAMED}
    given = {name: value for name, value in given.items() if value}
    changes = {n: v for n, v in given.items() if n != "evaluation"}
    for name in changes.keys() - options(opened.config).keys():
        raise ConfigError(
            f"--{name} is not a flag of trainers.{opened.experiment.name}."
        )
    measured = dataclasses.replace(
        opened.config, compile=config.compile, **changes
    )
    measured = with_evaluation(measured, config.evaluation)
    measured.validate()
    with range_of_run("choose shorter lengths"):
        measured = with_max_position(measured)
    first = read_first(opened)
    strategy = make_strategy(config.strategy, config.tpu)
    with watch_workers(strategy):
        results = evaluate(opened, measured, strategy)
    if not strategy.is_chief:
        return
    named = (f"{name}={value}" for name, value in given.items())
    checkpoint = pathlib.Path(results["checkpoint"])
    name = "-".join([checkpoint.stem, *named])
    problem = opened.experiment.make_problem(measured)
    write(
        opened, results, problem, first, re.sub(r"[^\w=.,-]", "_", name)[:120]
    )


def evaluate(opened, config, strategy):
    """Measures a checkpoint at every length.

    Args:
        opened: The `OpenedRun`.
        config: Configuration to measure with.
        strategy: The `Strategy`. Every worker reads the checkpoint.

    Returns:
        Dict in the form of `results.json`.
    """
    model, _, problem = opened.experiment.make_parts(config, strategy)
    opened.prepare(problem)
    check_same_data(strategy, problem)
    opened, step = opened.load(model)
    print(f"{opened.checkpoint}: step {step}; {describe(strategy, config)}")
    name = opened.checkpoint.stem
    progress = functools.partial(show_evaluation, Line(), name, problem)
    evaluation = make_evaluation(config, model, problem, strategy)
    found = evaluation(progress)
    of_model = measure_model(model, problem, strategy, progress)
    positions = describe_positions(evaluation.positions, problem)
    if positions:
        positions |= describe_coverage(problem, build_encoding(config))
    return {
        **describe_results(
            opened.experiment.name,
            opened.digest,
            dataclasses.asdict(config),
            problem,
            strategy,
        ),
        "checkpoint": opened.checkpoint.name,
        "final": {
            **summarize(found, problem, step),
            **positions,
            **of_model,
        },
    }


def read_first(opened):
    """Returns the results of a run itself; `None` if it has not ended.

    Raises:
        ConfigError: If they lack what an evaluation is compared with.
    """
    path = opened.path / "results.json"
    first = read_results(path)
    metric = opened.experiment.make_problem(opened.config).metrics[0].name
    if first is not None and not _has_numbers(first["final"], metric):
        raise ConfigError(
            f"{path} has no score, or no {metric} by length: it is damaged or "
            "of another version. Restore it, or move it away."
        )
    return first


def _has_numbers(final, metric):
    """Returns whether results have what is printed and drawn, in numbers."""
    if not {"score", f"{metric}_by_length"} <= final.keys():
        return False
    numbers = [value for n, value in final.items() if n.endswith("score")]
    for name, curve in final.items():
        if name.endswith("_by_length"):
            if not isinstance(curve, dict) or not all(
                map(str.isdecimal, curve)
            ):
                return False
            numbers += curve.values()
    return all(type(number) in (int, float) for number in numbers)


def write(opened, results, problem, first, name):
    """Writes and prints results beside the first ones of the run."""
    directory = opened.path / "evaluations"
    with writing(directory, "nothing was written"):
        directory.mkdir(exist_ok=True)
    path = directory / f"{name}.json"
    write_json(path, results)
    compared = {"this evaluation": results}
    if first is not None:
        compared = {"results.json": first, **compared}
    metric, score = choose_metric(compared.values(), problem.metrics[0].name)
    key = f"{metric}_by_length"
    columns = [found["final"][key] for found in compared.values()]
    lengths = list(results["final"][key])
    shown = lengths[:: -(-len(lengths) // ROWS)]
    floor = {str(n): v for n, v in find_floor(results, problem).items()}
    head = [problem.length_name, *compared]
    scores = [f"{found['final'][score]:.4g}" for found in compared.values()]
    measured = list(columns)
    if floor:
        head.append("floor")
        columns.append(floor)
        mean = average_unseen(floor, problem.longest_trained)
        scores.append(f"{mean:.4g}")
    rows = [
        (
            problem.describe_length(int(n)),
            *(f"{column[n]:.4g}" if n in column else "" for column in columns),
        )
        for n in shown
    ]
    print(f"{metric} at each {problem.length_name}:")
    print(table(tuple(head), [*rows, ("score", *scores)]))
    if len(set(map(frozenset, measured))) > 1:
        scored = name_scored(problem)
        print(f"A score is the mean over the {scored} of its own column.")
    plot_results(path.with_suffix(".png"), compared, problem)
    worst = describe_worst_kind(results)
    if worst:
        print(worst)
    if floor:
        print(f"this evaluation is {describe_floor(results, problem)}")
    print(f"results: {path}")


if __name__ == "__main__":
    run(EvaluateConfig, {}, main, operands="RUN")
