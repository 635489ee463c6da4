"""Checkpoints of a run, and its resumption.

A checkpoint is one file of NumPy arrays: the weights of the model and the
state of its optimizer by their paths, the number of finished steps, the seconds
they took, the digest of the run's configuration, and the version of this
format. Data, positions and dropout follow from the step. A file appears whole
or not at all, and the checksums of its archive tell if it was damaged later. It
holds nothing of devices or strategies, so a run may continue elsewhere, and
under the other backend.
"""

import concurrent.futures
import os
import pathlib
import re
import struct

import keras
import numpy as np

from datasets.files import only_files
from trainers.devices.workers import refuse_together, workers_agree
from trainers.errors import ConfigError, StoppedError, TrainingError
from trainers.records.files import replacing, writing
from trainers.records.variable_names import name_variables

LAST_RECORD = struct.Struct("<10xH10x")
"""Last record of a zip archive without a comment: the number of its files."""

FORMAT = 3
"""Version of the format.

The first named variables by their order; the second had no digest.
"""


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
        digest: str. Digest of the run's configuration.
        steps: int. Number of the run's last step.
        keep: int. Number of checkpoints to keep, beside the best one.
        initial: Dict from names to arrays. Values that the variables begin
            with where there is no checkpoint, on the first worker.

    Raises:
        ConfigError: If two variables of the model have the same path.
    """

    def __init__(
        self,
        workdir,
        *,
        model,
        optimizer,
        strategy,
        digest,
        steps,
        keep=3,
        initial=None,
    ):
        self._directory = pathlib.Path(workdir) / "checkpoints"
        self._variables = name_variables(model, optimizer)
        self._strategy = strategy
        self._digest = digest
        self._steps = steps
        self._keep = keep
        self._initial = initial or {}
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
            ConfigError: If there are checkpoints, but none can be used, or the
                newest whole one is not of this run.
        """
        self.wait()
        begin = self._pack(0, 0.0, {**self.copy(), **self._initial})
        with refuse_together(self._strategy):
            found = self._read_newest() if self._strategy.is_chief else None
        state = begin if found is None else found
        needed = (*self._variables, "step", "seconds")
        state = self._strategy.from_chief(
            {name: state[name] for name in needed}
        )
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

    def _newest_first(self, kind):
        return find_checkpoints(self._directory, kind)

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
            self._write, kind, self._pack(step, seconds, arrays), keep
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

    def _write(self, kind, arrays, keep):
        path = self._directory / f"{kind}-{arrays['step']}.npz"
        consequence = f"the last whole checkpoint is {self.latest}"
        with writing(path, consequence):
            self._directory.mkdir(parents=True, exist_ok=True)
            with replacing(path, consequence) as file:
                np.savez(file, **arrays)
            for old in self._newest_first(kind)[keep:]:
                old.unlink()

    def _read_newest(self):
        # One of another run would take the place of this run's best.
        for path in self._newest_first("best"):
            self._read(path)
        paths = self._newest_first("checkpoint")
        for path in paths:
            state = self._read(path)
            if state is not None:
                return state
        if paths:
            raise ConfigError(
                f"no checkpoint in {self._directory} is whole: remove it to "
                "start from the beginning, or choose another --workdir."
            )
        return None

    def _read(self, path):
        """Reads a checkpoint of this run; `None` if it is damaged or gone."""
        try:
            state = read_checkpoint(path, self._digest)
        except GoneError:
            return None
        except DamagedError as error:
            print(f"checkpoint {path} is damaged ({error}): not used")
            return None
        self._check_step(state, path)
        check_shapes(state, self._pack(0, 0.0, self._variables), path)
        return state

    def _check_step(self, state, path):
        if state["step"] > self._steps:
            raise ConfigError(
                f"checkpoint {path} is of step {state['step']}, but the run "
                f"ends with step {self._steps}: move it away, or raise --steps."
            )

    def _pack(self, step, seconds, arrays):
        """Returns all arrays of a checkpoint by name."""
        return {
            "format": np.int64(FORMAT),
            "step": np.int64(step),
            "seconds": np.float64(seconds),
            "digest": np.frombuffer(bytes.fromhex(self._digest), np.uint8),
            **arrays,
        }


class DamagedError(Exception):
    """A checkpoint is not what was written."""


class GoneError(ConfigError):
    """A checkpoint was there, and is there no longer."""


def find_checkpoints(directory, kind):
    """Returns the paths of checkpoints, the newest first.

    Args:
        directory: `pathlib.Path` of the directory of checkpoints.
        kind: str. `"checkpoint"` or `"best"`.
    """
    found = {
        int(match[1]): path
        for path in directory.glob(f"{kind}-*.npz")
        if (match := re.fullmatch(rf"{kind}-(\d+)\.npz", path.name))
    }
    return [found[step] for step in sorted(found, reverse=True)]


def read_checkpoint(path, digest):
    """Reads a checkpoint of a run.

    Args:
        path: `pathlib.Path` of the file.
        digest: str. Digest of the run's configuration.

    Returns:
        Dict from names to NumPy arrays.

    Raises:
        DamagedError: If the file is damaged.
        GoneError: If there is no file.
        ConfigError: If it is whole, but not of this run, of another version
            of the format, or holds numbers that are not finite.
    """
    try:
        with (
            open(path, "rb", opener=only_files) as file,
            np.load(file) as arrays,
        ):
            _check_count(file, len(arrays.files))
            state = {name: arrays[name] for name in arrays.files}
        _check_numbers(state, path)
        step, saved_digest = int(state["step"]), state.get("digest")
        version = int(state.get("format", 1))
    except ConfigError:
        raise
    except FileNotFoundError:
        raise GoneError(f"there is no checkpoint {path}.") from None
    except IsADirectoryError:
        raise ConfigError(
            f"{path} is a directory where a checkpoint belongs: move it away."
        ) from None
    except Exception as error:  # A damaged archive fails in many ways.
        raise DamagedError(error) from None
    _check_format(version, path)
    if saved_digest is None or saved_digest.tobytes().hex() != digest:
        raise ConfigError(
            f"checkpoint {path} is of a run with another configuration: move "
            "it away, or choose another --workdir."
        )
    if path.stem.rpartition("-")[2] != str(step):
        raise ConfigError(
            f"checkpoint {path} is of step {step}: give it back its name."
        )
    for name, values in state.items():
        if not np.isfinite(values).all():
            raise ConfigError(
                f"checkpoint {path} holds numbers that are not finite, in "
                f"{name}: move it away to resume from the one before it."
            )
    return state


def load_weights(model, path, digest):
    """Loads the weights of a checkpoint into a model.

    Args:
        model: Built Keras model.
        path: `pathlib.Path` of the file.
        digest: str. Digest of the run's configuration.

    Returns:
        int. Number of steps that the weights were trained for.

    Raises:
        ConfigError: If the file is damaged, or not of this run or model.
    """
    weights, step = read_weights(path, digest)
    variables = name_variables(model)
    check_shapes(weights, variables, path)
    for name, variable in variables.items():
        variable.assign(weights[name])
    return step


def read_weights(path, digest):
    """Reads the weights of the model from a checkpoint.

    Args:
        path: `pathlib.Path` of the file.
        digest: str. Digest of the run's configuration.

    Returns:
        Dict from names to NumPy arrays, and the number of steps that they
        were trained for.

    Raises:
        ConfigError: If the file is damaged, or not of this run.
    """
    try:
        state = read_checkpoint(path, digest)
    except DamagedError as error:
        raise ConfigError(f"checkpoint {path} is damaged ({error}).") from None
    weights = {n: v for n, v in state.items() if n.startswith("model/")}
    return weights, int(state["step"])


def check_shapes(state, expected, path):
    """Raises `ConfigError` unless a checkpoint fits a model.

    Args:
        state: Dict from names to arrays, of the checkpoint.
        expected: Dict from names to arrays or variables, of the model.
        path: The file, for the message.
    """
    found = {name: tuple(values.shape) for name, values in state.items()}
    wanted = {name: tuple(values.shape) for name, values in expected.items()}
    if found != wanted:
        name = min(set(found.items()) ^ set(wanted.items()))[0]
        raise ConfigError(
            f"checkpoint {path} is of another model: its {name} has shape "
            f"{found.get(name)}, this model's {wanted.get(name)}."
        )


def _check_count(file, found):
    """Raises `ValueError` unless all files of an archive were found.

    Their number stands in the last record of an archive. Python does not read
    it: a wrong length of a comment in the list of the files hides the files
    that follow.
    """
    file.seek(-LAST_RECORD.size, os.SEEK_END)
    (written,) = LAST_RECORD.unpack(file.read())
    if written != found:
        raise ValueError(f"{found} of {written} arrays are listed")


def _check_numbers(state, path):
    """Raises `ConfigError` if an array of a checkpoint has no real numbers."""
    for name, values in state.items():
        if values.dtype.kind not in "biuf":
            raise ConfigError(
                f"checkpoint {path} holds no numbers in {name}: move it away "
                "to resume from the one before it."
            )


def _check_format(version, path):
    """Raises `ConfigError` if a checkpoint is of another version."""
    if version != FORMAT:
        raise ConfigError(
            f"checkpoint {path} has format {version}, and this version of the "
            f"trainers reads format {FORMAT}: finish the run with the version "
            "that began it, or choose another --workdir."
        )
