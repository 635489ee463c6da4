"""Runs that a tool looks at, and the experiments that they are of."""

import dataclasses
import importlib
import os
import pathlib
from typing import Any

import trainers
from trainers.errors import ConfigError
from trainers.options.choices import check_choice
from trainers.records.checkpoints import find_checkpoints
from trainers.records.workdir import read_config


def registered():
    """Returns all `Experiment`s by name."""
    return {
        name: importlib.import_module(module).EXPERIMENT
        for name, module in trainers.EXPERIMENTS.items()
    }


def make_problem(results):
    """Makes the `Problem` of results, for its title, metrics and floors.

    Args:
        results: Dict, the content of `results.json`.

    Raises:
        ConfigError: If they are of an unknown trainer.
    """
    experiments = registered()
    check_choice("the trainer of a run", results["trainer"], [*experiments])
    experiment = experiments[results["trainer"]]
    return experiment.make_problem(experiment.config(**results["config"]))


@dataclasses.dataclass(frozen=True)
class OpenedRun:
    """A run that a tool looks at.

    Attributes:
        path: `pathlib.Path` of its working directory.
        experiment: Its `Experiment`.
        config: Its configuration.
        digest: str. Digest of its configuration.
        checkpoint: `pathlib.Path` of the checkpoint to look at.
    """

    path: pathlib.Path
    experiment: Any
    config: Any
    digest: str
    checkpoint: pathlib.Path


def open_run(text, which="newest"):
    """Opens a run.

    Args:
        text: str. Its working directory, or one of its checkpoints.
        which: `"newest"` or `"best"`, the checkpoint where `text` is a
            directory.

    Returns:
        An `OpenedRun`.

    Raises:
        ConfigError: If there is no such run or checkpoint, or it is of
            another version.
    """
    given = pathlib.Path(os.path.expanduser(text)).absolute()
    path = given.parents[1] if given.suffix == ".npz" else given
    record = read_config(path)
    if record is None:
        raise ConfigError(
            f"{text} is not the working directory of a run, which has a "
            "config.json, nor one of its checkpoints."
        )
    source, experiments = path / "config.json", registered()
    check_choice(f"the trainer in {source}", record["trainer"], [*experiments])
    experiment = experiments[record["trainer"]]
    try:
        config = experiment.config(**record["config"])
    except TypeError:
        raise ConfigError(
            f"{source} has flags that this version does not know: use the "
            "version that began the run."
        ) from None
    config.validate()
    checkpoint = given
    if path == given:
        kind = {"newest": "checkpoint", "best": "best"}[which]
        found = find_checkpoints(path / "checkpoints", kind)
        if not found:
            raise ConfigError(f"{path} has no checkpoint {kind}-*.npz yet.")
        checkpoint = found[0]
    if not checkpoint.exists():
        raise ConfigError(f"there is no checkpoint {checkpoint}.")
    return OpenedRun(path, experiment, config, record["digest"], checkpoint)
