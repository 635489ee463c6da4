"""The working directory of a run: configuration, metrics and results."""

import contextlib
import csv
import dataclasses
import json
import os
import pathlib
import platform

import keras
import numpy as np
import tensorflow as tf

import keras_lengen
from trainers.config import ConfigError, TrainingError

COLUMNS = ("step", "seconds", "metric", "length", "value")

# What may change from one start of a run to the next: where it is, and what
# makes no difference to the result.
_FREE = (
    "workdir",
    "strategy",
    "tpu",
    "steps_per_loop",
    "checkpoint_every",
    "keep_checkpoints",
)


@contextlib.contextmanager
def writing(path, consequence="what was there before is whole"):
    """Turns a full disk and the like into a `TrainingError` that says so."""
    try:
        yield
    except OSError as error:
        raise TrainingError(
            f"cannot write {path}: {error.strerror or error}; {consequence}. "
            "Mend that, and the same command goes on."
        ) from None


class Workdir:
    """Files of one run below `path`.

    Args:
        path: Directory, made if missing.
        config: Dataclass that configures the run.

    Raises:
        ConfigError: If the directory cannot be written or holds a run with
            another configuration.
    """

    def __init__(self, path, config):
        self.path = pathlib.Path(path)
        self.config = dataclasses.asdict(config)
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
            if name not in _FREE and previous.get(name) != value
        ]
        if changed:
            raise ConfigError(
                f"{self.path} holds a run with another configuration "
                f"({'; '.join(changed)}): choose another --workdir."
            )

    @property
    def results(self):
        """The results of a finished run, or `None`."""
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
        """Writes a file as a whole or not at all."""
        beside = self.path / f"{name}.partial"
        with writing(self.path / name):
            beside.write_text(json.dumps(content, indent=2) + "\n")
            os.replace(beside, self.path / name)

    def results_of(self, metrics, *, seconds, floors):
        """The content of `results.json`, from the evaluations in the metrics.

        Args:
            metrics: The run's `Metrics`.
            seconds: Seconds spent training.
            floors: `{name: {length: accuracy}}` of trivial predictors.
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
            "best": max(evaluations.values(), key=lambda found: found["score"]),
            **floors,
        }


class Metrics(keras.callbacks.Callback):
    """Keeps `metrics.csv` and TensorBoard's scalars of a run.

    Args:
        path: Working directory.
        longest_trained: Largest trained length; the score of an evaluation
            is the mean accuracy over longer ones.
    """

    def __init__(self, path, *, longest_trained):
        super().__init__()
        self._path = pathlib.Path(path) / "metrics.csv"
        self._longest_trained = longest_trained
        self._tensorboard = tf.summary.create_file_writer(
            str(pathlib.Path(path) / "tensorboard")
        )

    def on_train_begin(self, logs=None):
        """Drops what a killed run wrote after its last checkpoint."""
        rows = [row for row in self._rows() if row["step"] <= logs["step"]]
        beside = self._path.with_suffix(".partial")
        with writing(self._path):
            with beside.open("w", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS)
                writer.writeheader()
                writer.writerows(rows)
            os.replace(beside, self._path)

    def on_train_batch_end(self, batch, logs=None):
        """Adds the loss of the steps since the last call."""
        self._append(batch, logs["seconds"], "train_loss", {"": logs["loss"]})
        self._scalar("train/loss", logs["loss"], batch)

    def add_evaluation(self, step, seconds, results):
        """Adds `{metric: {length: value}}`, evaluated after `step` steps."""
        for metric, by_length in results.items():
            self._append(step, seconds, metric, by_length)
            unseen = self._unseen(by_length)
            if unseen:
                mean = sum(unseen) / len(unseen)
                self._scalar(f"unseen_lengths/{metric}", mean, step)
        self._tensorboard.flush()

    def has_evaluation(self, step, lengths):
        """Whether the model was evaluated at all lengths after `step` steps."""
        # The last metric to be written tells.
        by_length = self.evaluations().get(step, {}).get("loss_by_length", {})
        return set(by_length) == set(map(str, lengths))

    def is_best(self, step):
        """Whether no evaluation before that of `step` had its score."""
        scores = {
            at: found["score"] for at, found in self.evaluations().items()
        }
        return all(
            score < scores[step] for at, score in scores.items() if at < step
        )

    def evaluations(self):
        """All evaluations by step, each as results have it."""
        found = {}
        for row in self._rows():
            if row["length"]:
                evaluation = found.setdefault(row["step"], {})
                by_length = evaluation.setdefault(
                    f"{row['metric']}_by_length", {}
                )
                by_length[row["length"]] = row["value"]
        for step, evaluation in found.items():
            accuracies = evaluation["accuracy_by_length"]
            # Without longer lengths, the mean over those there are.
            scored = self._unseen(accuracies) or list(accuracies.values())
            evaluation["score"] = sum(scored) / len(scored)
            evaluation["step"] = step
        return found

    def _unseen(self, by_length):
        return [
            value
            for length, value in by_length.items()
            if int(length) > self._longest_trained
        ]

    def _append(self, step, seconds, metric, by_length):
        with (
            writing(self._path, "earlier lines and checkpoints are whole"),
            self._path.open("a", newline="") as file,
        ):
            csv.writer(file).writerows(
                (step, f"{seconds:.3f}", metric, length, value)
                for length, value in by_length.items()
            )

    def _rows(self):
        if not self._path.exists():
            return []
        rows = []
        # What follows the last line break was cut short by a kill.
        lines = self._path.read_text().rpartition("\n")[0].splitlines()
        for row in csv.DictReader(lines):
            row["step"] = int(row["step"])
            row["value"] = float(row["value"])
            rows.append(row)
        return rows

    def _scalar(self, name, value, step):
        with self._tensorboard.as_default():
            tf.summary.scalar(name, value, step=step)


def versions():
    """What a result depends on beside its configuration."""
    packages = (keras, keras_lengen, np, tf)
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        **{package.__name__: package.__version__ for package in packages},
    }
