"""The metrics of a run, as a table on disk and as TensorBoard scalars."""

import csv
import io
import pathlib

import keras
import tensorflow as tf

from trainers.engine.problem import average_unseen
from trainers.errors import ConfigError
from trainers.records.files import appending, read_bytes, replacing
from trainers.records.results import summarize

COLUMNS = ("step", "seconds", "metric", "length", "value")


class Metrics(keras.callbacks.Callback):
    """Writes a run's `metrics.csv` and TensorBoard scalars, and reads the CSV.

    Args:
        path: Working directory.
        problem: The `Problem`; the score is a mean of its first metric.
    """

    def __init__(self, path, problem):
        super().__init__()
        self._path = pathlib.Path(path) / "metrics.csv"
        self._problem = problem
        directory = pathlib.Path(path) / "tensorboard"
        try:
            self._tensorboard = tf.summary.create_file_writer(str(directory))
        except tf.errors.OpError:
            raise ConfigError(
                f"cannot write to {directory}: move it away, or choose another "
                "--workdir."
            ) from None

    def on_train_begin(self, logs=None):
        """Drops rows that a killed run wrote after its last checkpoint."""
        rows = [row for row in self._rows() if row["step"] <= logs["step"]]
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
        with replacing(self._path) as file:
            file.write(text.getvalue().encode())

    def on_train_batch_end(self, batch, logs=None):
        """Adds the mean loss of the steps since the last call."""
        self._append(batch, logs["seconds"], "train_loss", {"": logs["loss"]})
        self._scalar("train/loss", logs["loss"], batch)

    def add_evaluation(self, step, seconds, results):
        """Adds the results `{metric: {length: value}}` of an evaluation."""
        for metric, by_length in results.items():
            self._append(step, seconds, metric, by_length)
            mean = average_unseen(by_length, self._problem.longest_trained)
            self._scalar(f"unseen_lengths/{metric}", mean, step)
        self._tensorboard.flush()

    def has_evaluation(self, step):
        """Returns whether all lengths were evaluated after `step` steps."""
        # An evaluation is complete if its last metric is.
        last = f"{self._problem.metrics[-1].name}_by_length"
        by_length = self.evaluations().get(step, {}).get(last, {})
        return set(by_length) == set(map(str, self._problem.lengths))

    def is_best(self, step):
        """Returns whether the score of `step` is better than all before."""
        found = self.evaluations()
        earlier = [found[at] for at in found if at < step]
        return self.best([*earlier, found[step]]) is found[step]

    def best(self, evaluations):
        """Returns the first of the evaluations with the best score."""
        better = max if self._problem.metrics[0].higher_is_better else min
        return better(evaluations, key=lambda found: found["score"])

    def evaluations(self):
        """Returns all evaluations by step, in the form of `results.json`."""
        found = {}
        for row in self._rows():
            if row["length"]:
                by_metric = found.setdefault(row["step"], {})
                by_length = by_metric.setdefault(row["metric"], {})
                by_length[row["length"]] = row["value"]
        name = self._problem.metrics[0].name
        if found and name not in found[max(found)]:
            # A killed run began to write it.
            del found[max(found)]
        for step, by_metric in found.items():
            if name not in by_metric:
                raise ConfigError(
                    f"{self._path} has no {name} of step {step}: remove the "
                    "lines of that step, or choose another --workdir."
                )
        return {
            step: summarize(by_metric, self._problem, step)
            for step, by_metric in found.items()
        }

    def _append(self, step, seconds, metric, by_length):
        with appending(self._path) as file:
            csv.writer(file).writerows(
                (step, f"{seconds:.3f}", metric, length, value)
                for length, value in by_length.items()
            )

    def _rows(self):
        content = read_bytes(self._path)
        if content is None:
            return []
        # A loss of power may leave NUL bytes at the end of a file.
        text = content.rstrip(b"\0").decode(errors="replace")
        # A kill may have cut the last line short.
        lines = text.rpartition("\n")[0].splitlines()
        rows = []
        try:
            for row in csv.DictReader(lines):
                row["step"] = int(row["step"])
                row["value"] = float(row["value"])
                int(row["length"] or 0)
                rows.append(row)
        except (KeyError, TypeError, ValueError, csv.Error):
            raise ConfigError(
                f"{self._path} is damaged in line {len(rows) + 2}: remove that "
                "line and those after it, or choose another --workdir."
            ) from None
        return rows

    def _scalar(self, name, value, step):
        with self._tensorboard.as_default():
            tf.summary.scalar(name, value, step=step)
