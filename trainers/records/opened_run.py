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
from trainers.options.option import check_options, format_flag, options
from trainers.records.checkpoints import (
    GoneError,
    find_checkpoints,
    load_weights,
)
from trainers.records.workdir import (
    check_data,
    check_digest,
    check_sources,
    find_fixed,
    find_sources,
    make_digest,
    read_config,
)

ATTEMPTS = 5
"""Largest number of times that the newest checkpoint is looked for."""


def registered():
    """Returns all `Experiment`s by name."""
    return {
        name: importlib.import_module(module).EXPERIMENT
        for name, module in trainers.EXPERIMENTS.items()
    }


def list_booleans(*configs):
    """Returns the names of the flags of all trainers that take no value.

    Args:
        *configs: Further classes of configurations whose flags to list.
    """
    configs = *configs, *(known.config for known in registered().values())
    return {
        name
        for config in configs
        for name, known in options(config).items()
        if isinstance(known.default, bool)
    }


def make_problem(results, source="a run"):
    """Makes the `Problem` of results, for its title, metrics and floors.

    Args:
        results: Dict, the content of `results.json`.
        source: What has them, for messages.

    Raises:
        ConfigError: If they are of an unknown trainer or of another version, or
            their flags are wrong.
    """
    experiment, config = read_experiment(results, source)
    # Each flag by itself: whether they fit together may depend on data.
    check_options(config)
    return experiment.make_problem(config)


def are_of_other_data(results, other_results):
    """Returns whether data of the same name differ.

    Args:
        results: Dict, the content of `results.json`.
        other_results: Dict, that of another run of the same trainer.
    """
    known = options(registered()[results["trainer"]].config)
    for name, of_flag in known.items():
        # The same data may be in another directory.
        if of_flag.names_data and of_flag.changes_result:
            ours, theirs = (
                found["config"].get(name, of_flag.default)
                for found in (results, other_results)
            )
            if ours != theirs:
                return False
    digests = [found.get("data_digest") for found in (results, other_results)]
    return all(digests) and digests[0] != digests[1]


def read_experiment(record, source):
    """Returns the `Experiment` and the configuration of a record.

    Args:
        record: Dict, the content of `config.json` or `results.json`.
        source: What has the record, for messages.

    Raises:
        ConfigError: If they are of an unknown trainer or of another version.
    """
    experiments = registered()
    check_choice(f"the trainer of {source}", record["trainer"], [*experiments])
    experiment = experiments[record["trainer"]]
    try:
        return experiment, experiment.config(**record["config"])
    except TypeError:
        raise ConfigError(
            f"{source} has flags that this version does not know: use the "
            "version that began the run."
        ) from None


@dataclasses.dataclass(frozen=True)
class OpenedRun:
    """A run that a tool looks at.

    Attributes:
        path: `pathlib.Path` of its working directory.
        experiment: Its `Experiment`.
        config: Its configuration.
        digest: str. Digest of its configuration.
        data_digest: str. Digest of the data that it began with.
        checkpoint: `pathlib.Path` of the checkpoint to look at.
        which: `"newest"` or `"best"`; `""`: this very checkpoint was given.
    """

    path: pathlib.Path
    experiment: Any
    config: Any
    digest: str
    data_digest: str
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

    def prepare(self, problem):
        """Opens the data of a problem, which must be those of the run.

        Raises:
            ConfigError: If they are not there.
            OtherDataError: If they have changed.
        """
        problem.prepare()
        self.check_data(
            problem, "name their place by --data_dir, or train another run"
        )

    def check_data(self, problem, remedy):
        """Raises `OtherDataError` if the data of the run have changed.

        Data that other flags name are meant to be other ones.

        Args:
            problem: A prepared `Problem`.
            remedy: str. What to do other than to restore them, for the message.
        """
        named = _name_data(problem.config)
        if named == _name_data(self.config):
            check_data(
                self.path,
                self.data_digest,
                problem.data_digest,
                f"{self.path} began with other data than {named} has now: "
                f"restore them, {remedy}.",
            )


def _name_data(config):
    """Returns the flags that say which data are read, a str."""
    return " ".join(
        format_flag(name, getattr(config, name))
        for name, known in options(config).items()
        if known.names_data
    )


def open_run(text, which="newest", data_dir=""):
    """Opens a run.

    Args:
        text: str. Its working directory, or one of its checkpoints.
        which: `"newest"` or `"best"`, the checkpoint where `text` is a
            directory.
        data_dir: str. Directory of its data, if they have moved.

    Returns:
        An `OpenedRun`.

    Raises:
        ConfigError: If there is no such run or checkpoint, if it is of another
            version, or if its configuration was changed by hand.
    """
    given = pathlib.Path(os.path.expanduser(text)).absolute()
    if given.suffix == ".npz" and which != "newest":
        raise ConfigError(
            f"{text} is a checkpoint itself: remove --checkpoint={which}, "
            "or give the directory of the run."
        )
    path = given.parent.parent if given.suffix == ".npz" else given
    record = read_config(path)
    if record is None:
        raise ConfigError(
            f"{text} is not the working directory of a run, which has a "
            "config.json, nor one of its checkpoints."
        )
    experiment, config = read_experiment(record, path / "config.json")
    if data_dir:
        config = _with_data_dir(config, data_dir, experiment.name)
    config.validate()
    fixed = find_fixed(config, record["config"])
    sources = find_sources(config)
    check_sources(path, record, sources)
    check_digest(path, record, make_digest(record["trainer"], fixed, sources))
    opened = OpenedRun(
        path,
        experiment,
        config,
        record["digest"],
        record.get("data_digest", ""),
        given,
    )
    if path == given:
        opened = dataclasses.replace(opened, which=which)
        return dataclasses.replace(opened, checkpoint=opened.find_newest())
    if not given.exists():
        raise GoneError(f"there is no checkpoint {given}.")
    return opened


def _with_data_dir(config, data_dir, trainer):
    if "data_dir" not in options(config):
        raise ConfigError(f"--data_dir is not a flag of trainers.{trainer}.")
    return dataclasses.replace(config, data_dir=data_dir)
