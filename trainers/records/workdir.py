"""The working directory of a run: configuration, metrics and results."""

import dataclasses
import json
import os
import pathlib
import platform

import keras
import numpy as np
import tensorflow as tf

import keras_lengen
from trainers.errors import ConfigError, TrainingError
from trainers.options.fields import options
from trainers.records.files import writing


class Workdir:
    """Reads and writes the files of one run.

    Args:
        path: Directory, created if missing.
        config: Configuration of the run, a `TrainerConfig`.

    Raises:
        ConfigError: If the directory cannot be written or holds a run with
            another configuration.
    """

    def __init__(self, path, config):
        self.path = pathlib.Path(path)
        self.config = dataclasses.asdict(config)
        self._free = [
            name
            for name, known in options(config).items()
            if not known.changes_result
        ]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            previous = self._read("config.json")
            self._check_same(previous or self.config)
            self.write_json("config.json", self.config)
        except TrainingError as error:
            raise ConfigError(str(error)) from None
        except OSError as error:
            raise ConfigError(
                f"cannot write to --workdir={path}: {error.strerror}."
            ) from None

    def _check_same(self, previous):
        changed = [
            f"--{name} was {previous.get(name)!r}, is {value!r}"
            for name, value in self.config.items()
            if name not in self._free and previous.get(name) != value
        ]
        if changed:
            raise ConfigError(
                f"{self.path} holds a run with another configuration "
                f"({'; '.join(changed)}): choose another --workdir."
            )

    @property
    def results(self):
        """Dict, the results of a finished run, or `None`."""
        return self._read("results.json")

    def _read(self, name):
        path = self.path / name
        if not path.exists():
            return None
        try:
            return json.loads(path.read_text())
        except ValueError:
            raise ConfigError(
                f"{path} is not valid JSON: remove it, or choose another "
                "--workdir."
            ) from None

    def write_json(self, name, content):
        """Writes a JSON file, as a whole or not at all."""
        beside = self.path / f"{name}.partial"
        with writing(self.path / name):
            beside.write_text(json.dumps(content, indent=2) + "\n")
            os.replace(beside, self.path / name)

    def results_of(self, metrics, problem, *, seconds):
        """Returns the content of `results.json`.

        Args:
            metrics: The run's `Metrics`.
            problem: The run's `Problem`.
            seconds: float. Seconds spent training.
        """
        evaluations = metrics.evaluations()
        return {
            "config": self.config,
            "versions": versions(),
            "train": {
                "steps": self.config["steps"],
                "seconds": seconds,
                "steps_per_second": self.config["steps"] / max(seconds, 1e-9),
            },
            "final": evaluations[max(evaluations)],
            "best": metrics.best(list(evaluations.values())),
            "score_metric": problem.metrics[0].name,
            "higher_is_better": problem.metrics[0].higher_is_better,
            **{
                f"{name}_by_length": {str(n): value for n, value in by.items()}
                for name, by in problem.floors().items()
            },
        }


def versions():
    """Returns the versions of packages that results depend on."""
    packages = (keras, keras_lengen, np, tf)
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        **{package.__name__: package.__version__ for package in packages},
    }
