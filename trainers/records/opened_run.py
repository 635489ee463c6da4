"""Runs that a tool looks at, and the experiments that they are of."""

import contextlib
import dataclasses
import importlib
import os
import pathlib
from typing import Any

import trainers
from trainers.errors import ConfigError
from trainers.options.choices import check_choice
from trainers.options.option import check_options
from trainers.records.checkpoints import (
    GoneError,
    find_checkpoints,
    load_weights,
)
from trainers.records.workdir import read_config

ATTEMPTS = 5
"""Largest number of times that the newest checkpoint is looked for."""


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
        ConfigError: If they are of an unknown trainer, or their flags are
            wrong.
    """
    experiments = registered()
    check_choice("the trainer of a run", results["trainer"], [*experiments])
    experiment = experiments[results["trainer"]]
    try:
        config = experiment.config(**results["config"])
    except TypeError:
        raise ConfigError(
            "results have flags that this version does not know: use the "
            "version that began the run."
        ) from None
    # Each flag by itself: whether they fit together may depend on data.
    check_options(config)
    return experiment.make_problem(config)


@dataclasses.dataclass(frozen=True)
class OpenedRun:
    """A run that a tool looks at.

    Attributes:
        path: `pathlib.Path` of its working directory.
        experiment: Its `Experiment`.
        config: Its configuration.
        digest: str. Digest of its configuration.
        checkpoint: `pathlib.Path` of the checkpoint to look at.
        which: `"newest"` or `"best"`; `""`: this very checkpoint was given.
    """

    path: pathlib.Path
    experiment: Any
    config: Any
    digest: str
    checkpoint: pathlib.Path
    which: str = ""

    def load(self, model):
        """Loads the weights of the checkpoint into a model.

        A run that trains on removes old checkpoints: if the checkpoint is
        gone, the one that took its place is loaded.

        Args:
            model: Built Keras model.

        Returns:
            The `OpenedRun` whose checkpoint was loaded, and the number of
            steps that its weights were trained for.

        Raises:
            ConfigError: If the file is damaged, or not of this run or model.
        """
        return self.retry(
            lambda run: (run, load_weights(model, run.checkpoint, run.digest))
        )

    def retry(self, use):
        """Returns `use(run)`, where `run` has a checkpoint that is there.

        Args:
            use: Function of an `OpenedRun` that raises `GoneError` if its
                checkpoint is gone.
        """
        run = self
        for _ in range(ATTEMPTS - 1):
            with contextlib.suppress(GoneError):
                return use(run)
            if run.which:
                run = dataclasses.replace(run, checkpoint=run.find_newest())
        return use(run)

    def find_newest(self):
        """Returns the path of the newest checkpoint of the kind `which`.

        Raises:
            ConfigError: If there is none.
        """
        kind = {"newest": "checkpoint", "best": "best"}[self.which]
        found = find_checkpoints(self.path / "checkpoints", kind)
        if not found:
            raise ConfigError(
                f"{self.path} has no checkpoint {kind}-*.npz yet."
            )
        return found[0]


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
    path = given.parent.parent if given.suffix == ".npz" else given
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
    opened = OpenedRun(path, experiment, config, record["digest"], given)
    if path == given:
        opened = dataclasses.replace(opened, which=which)
        return dataclasses.replace(opened, checkpoint=opened.find_newest())
    if not given.exists():
        raise GoneError(f"there is no checkpoint {given}.")
    return opened
