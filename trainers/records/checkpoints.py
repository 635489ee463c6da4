"""Checkpoints of a run, and its resumption.

A checkpoint is one file of NumPy arrays: the weights of the model and the
state of its optimizer by their paths, the number of finished steps, the seconds
they took, and the version of this format. Data, positions and dropout follow
from the step. A file appears whole or not at all, and the checksums of its
archive tell if it was damaged later. It holds nothing of devices or strategies,
so a run may continue elsewhere, and under the other backend.
"""

import concurrent.futures
import os
import pathlib
import re

import keras
import numpy as np

from trainers.cluster.workers import workers_agree
from trainers.errors import StoppedError, TrainingError
from trainers.records.files import writing
from trainers.records.variable_names import name_variables

FORMAT = 2
"""Version of the format; the first named variables by their order."""


class Checkpoints:
    """Keeps the last states of a run in `workdir/checkpoints`, and the best.

    A thread writes them from a copy of the variables; the context manager
    waits for it at its end. With several workers, the first one writes and
    reads, and sends the state to the others.

    Args:
        workdir: Working directory of the run.
        model: Built Keras model.
        optimizer: Built Keras optimizer.
        strategy: The `Strategy`.
        keep: int. Number of checkpoints to keep, beside the best one.

    Raises:
        ConfigError: If two variables of the model have the same path.
    """

    def __init__(self, workdir, *, model, optimizer, strategy, keep=3):
        self._directory = pathlib.Path(workdir) / "checkpoints"
        self._variables = name_variables(model, optimizer)
        self._strategy = strategy
        self._keep = keep
        self._thread = concurrent.futures.ThreadPoolExecutor(max_workers=1)
        self._writing = None
        self._saved = None

    def __enter__(self):
        return self

    def __exit__(self, failed, *_):
        if failed is None or issubclass(failed, StoppedError):
            self.wait()
        self._thread.shutdown()

    @property
    def latest(self):
        """`pathlib.Path` of the newest checkpoint, or `None`."""
        return next(iter(self._newest_first("checkpoint")), None)

    def save(self, step, seconds):
        """Begins to write the state after `step` finished steps.

        Raises:
            TrainingError: If it, or the one before it, cannot be written, or
                a number in it is not finite.
        """
        if step != self._saved:
            self._save("checkpoint", step, seconds, keep=self._keep)
            self._saved = step

    def save_best(self, step, seconds):
        """Begins to write the state as the best one, in place of the last."""
        self._save("best", step, seconds, keep=1)

    def wait(self):
        """Waits until the last checkpoint is written.

        Raises:
            TrainingError: If it cannot be written.
        """
        if self._writing is not None:
            pending, self._writing = self._writing, None
            pending.result()

    def restore(self):
        """Restores the newest undamaged state; returns its steps and seconds.

        Raises:
            TrainingError: If there are checkpoints, but none can be used, or
                the newest is of another version of the format.
        """
        self.wait()
        begin = _pack(0, 0.0, self.copy())
        found = self._read_newest() if self._strategy.is_chief else None
        state = begin if found is None else found
        state = self._strategy.from_chief(state)
        for name, variable in self._variables.items():
            variable.assign(state[name])
        return int(state["step"]), float(state["seconds"])

    def copy(self):
        """Returns copies of the variables, NumPy arrays by name."""
        # NumPy's own memory: the next step changes variables in place.
        return {
            name: np.array(keras.ops.convert_to_numpy(variable))
            for name, variable in self._variables.items()
        }

    def _path(self, kind, step):
        return self._directory / f"{kind}-{step}.npz"

    def _newest_first(self, kind):
        found = {
            int(match[1]): path
            for path in self._directory.glob(f"{kind}-*.npz")
            if (match := re.fullmatch(rf"{kind}-(\d+)\.npz", path.name))
        }
        return [found[step] for step in sorted(found, reverse=True)]

    def _save(self, kind, step, seconds, keep):
        arrays = self.copy()
        if not all(np.isfinite(values).all() for values in arrays.values()):
            raise TrainingError(
                f"weights are not finite after step {step}; the last good "
                f"checkpoint is {self.latest}: lower the learning rate or "
                "change the seed."
            )
        self._check_workers(arrays, step)
        if not self._strategy.is_chief:
            return
        self.wait()
        self._writing = self._thread.submit(
            self._write, kind, step, _pack(step, seconds, arrays), keep
        )

    def _check_workers(self, arrays, step):
        if not self._strategy.several_workers:
            return
        content = b"".join(values.tobytes() for values in arrays.values())
        if not workers_agree(self._strategy, content):
            raise TrainingError(
                f"the weights of the workers differ after step {step}: are "
                "their versions and kinds of processors the same? The last "
                f"good checkpoint is {self.latest}."
            )

    def _write(self, kind, step, arrays, keep):
        path = self._path(kind, step)
        with writing(path, f"the last whole checkpoint is {self.latest}"):
            self._directory.mkdir(parents=True, exist_ok=True)
            beside = path.with_suffix(".partial")
            try:
                with beside.open("wb") as file:
                    np.savez(file, **arrays)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(beside, path)
            finally:
                beside.unlink(missing_ok=True)
            for old in self._newest_first(kind)[keep:]:
                old.unlink()

    def _read_newest(self):
        paths = self._newest_first("checkpoint")
        for path in paths:
            try:
                with path.open("rb") as file, np.load(file) as arrays:
                    state = {name: arrays[name] for name in arrays.files}
                _check_format(state, path)
                self._check_shapes(state)
            except TrainingError:
                raise
            except Exception as error:  # A damaged archive fails in many ways.
                print(f"checkpoint {path} is damaged ({error}): trying another")
                continue
            return state
        if paths:
            raise TrainingError(
                f"no checkpoint in {self._directory} is whole and of this "
                "model: remove it to start from the beginning, or choose "
                "another --workdir."
            )
        return None

    def _check_shapes(self, state):
        expected = {name: tuple(v.shape) for name, v in self._variables.items()}
        expected |= dict.fromkeys(_pack(0, 0.0, {}), ())
        if {name: values.shape for name, values in state.items()} != expected:
            raise ValueError("it holds other variables than this model's")


def _pack(step, seconds, arrays):
    """Returns all arrays of a checkpoint by name."""
    return {
        "format": np.int64(FORMAT),
        "step": np.int64(step),
        "seconds": np.float64(seconds),
        **arrays,
    }


def _check_format(state, path):
    """Raises `TrainingError` if a checkpoint is of another version."""
    version = int(state.get("format", 1))
    if version != FORMAT:
        raise TrainingError(
            f"checkpoint {path} has format {version}, and this version of the "
            f"trainers reads format {FORMAT}: finish the run with the version "
            "that began it, or choose another --workdir."
        )
