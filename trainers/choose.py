r"""Finds the encoding for a task or for data of your own.

    python -m trainers.choose examples --data=reviews.csv
    python -m trainers.choose algorithmic --task=reverse_string --steps=3000
    python -m trainers.choose examples --data=questions.jsonl \
        --candidates=RoPE,ALiBi,SkippedPositions+RoPE --most_seeds=3

The argument is the name of a trainer. All candidates are trained with its flags
and several seeds, each run in a process. As long as no difference is seen
between the best of them, these are trained with another seed.

Writes a report with the advice, curves and tables, and the code of the advised
encoding. The same command again resumes. `python -m trainers.choose TRAINER
--help` shows the flags of the trainer, too.
"""

import pathlib
import sys

from keras_lengen.models import TransformerDecoder
from trainers.choosing.advice import (
    advise,
    is_above_floor,
    list_best,
    measure_outcome,
)
from trainers.choosing.options import (
    CANDIDATES,
    make_config_class,
    parse_candidates,
)
from trainers.choosing.page import report
from trainers.errors import ConfigError
from trainers.options.choices import check_choice
from trainers.options.command import errors_as_statuses, run
from trainers.options.fields import TrainerConfig, resolve
from trainers.options.option import options
from trainers.options.parsing import find_operand, find_request
from trainers.records.opened_run import (
    list_booleans,
    make_problem,
    registered,
)
from trainers.records.progress import format_seconds
from trainers.records.seeds import find_deviation
from trainers.reports.reading import read_saved
from trainers.sweeps.grids import Run
from trainers.sweeps.options import SweepConfig
from trainers.sweeps.training import measure, open_root, train_all


def main(config, trainer):
    """Trains the candidates, and reports which one to choose."""
    experiment = registered()[trainer]
    flags = _find_flags(config, experiment)
    first = _resolve(experiment, flags, {"encoding": "NoPE"})
    candidates = find_candidates(config, experiment, first)
    for candidate in candidates.values():
        _resolve(experiment, flags, candidate)
    title = experiment.make_problem(first).title
    root = open_root(
        pathlib.Path(config.root or pathlib.Path("runs", "choose", title))
    )
    seeds = dict.fromkeys(candidates, config.seeds)
    while True:
        runs = {
            name: [
                Run(
                    trainer=trainer,
                    flags={**flags, **candidates[name], "seed": seed},
                    row=title,
                    column=name,
                )
                for seed in range(count)
            ]
            for name, count in seeds.items()
        }
        _train(config, root, [run for of in runs.values() for run in of])
        outcomes, problem = _measure(root, runs)
        best = list_best(outcomes, problem)
        deviation, _ = find_deviation([of.scores for of in outcomes.values()])
        if (
            len(best) == 1
            or (not deviation and config.seeds > 1)
            or not is_above_floor(outcomes, problem)
            or any(seeds[name] >= config.most_seeds for name in best)
        ):
            break
        print(f"{advise(outcomes, problem)} Each is trained with another seed.")
        for name in best:
            seeds[name] += 1
    report(root, runs, outcomes, problem)


def find_candidates(config, experiment, first):
    """Returns the candidates of a configuration.

    Args:
        config: Configuration of this command.
        experiment: The `Experiment` of the trainer.
        first: Configuration of the trainer, with any encoding.

    Returns:
        Dict from the names of candidates to the flags that they set.
    """
    if config.candidates != "auto":
        return parse_candidates(config.candidates)
    is_decoder = isinstance(experiment.build_model(first), TransformerDecoder)
    names = CANDIDATES["decoder" if is_decoder else "encoder"]
    print(
        f"candidates: {', '.join(names)} (--candidates names others; "
        "docs/guides/choosing.md says what each is good at)"
    )
    return {name: {"encoding": name} for name in names}


def _find_flags(config, experiment):
    """Returns the flags of the trainer that are not its defaults."""
    known = options(experiment.config)
    preset = experiment.presets[config.preset]
    defaults = {name: option.default for name, option in known.items()}
    return {
        name: getattr(config, name)
        for name in known
        if hasattr(config, name)
        and getattr(config, name) != {**defaults, **preset}[name]
    }


def _resolve(experiment, flags, more):
    return resolve(experiment.config, experiment.presets, {**flags, **more})


def _train(config, root, runs):
    """Trains runs that are not finished, after an estimate of the time."""
    left = [run for run in runs if not root.is_finished(run)]
    if not left:
        return
    if config.retry_failed:
        for run_ in left:
            root.forget_failure(run_)
    # One of them says how long all of them take; no step is lost.
    measure(config, root, left)
    seconds, unknown = root.estimate(runs)(left)
    if not unknown:
        print(
            f"{len(left)} of {len(runs)} runs are left: about "
            f"{format_seconds(seconds)}, one after the other",
            flush=True,
        )
    train_all(config, root, tuple(runs))


def _measure(root, runs):
    """Returns the `Outcome` of each candidate, and the `Problem`."""
    found = {
        name: [read_saved(root.find_workdir(run))[0].results for run in of_name]
        for name, of_name in runs.items()
    }
    problem = make_problem(next(iter(found.values()))[0])
    return {
        name: measure_outcome(results, problem)
        for name, results in found.items()
    }, problem


def run_command():
    """Runs this command with the flags of the command line."""
    with errors_as_statuses():
        trainer = find_operand(sys.argv, list_booleans(SweepConfig))
        if trainer is not None:
            check_choice("the trainer", trainer, [*registered()])
            experiment = registered()[trainer]
            made = make_config_class(experiment.config), experiment.presets
        elif find_request(sys.argv) is not None:
            made = make_config_class(TrainerConfig), {}
        else:
            raise ConfigError(
                f"TRAINER is missing: one of {', '.join(registered())}."
            )
    run(*made, main, operands="TRAINER")


if __name__ == "__main__":
    run_command()
