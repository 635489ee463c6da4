"""Checkpoints: what they keep, and what they refuse.

Resumption after kills is tested with `benchmarks.faults.file_operations`.
"""

import errno
import os
import re
import threading
from unittest import mock

import keras
import numpy as np
import pytest

from tests.trainers.devices.worker import SecondWorker
from trainers.devices.tensorflow_strategy import make_strategy
from trainers.errors import ConfigError, StoppedError, TrainingError
from trainers.records.checkpoints import Checkpoints, GoneError, load_weights

DIGEST = "ab12"
KERNEL = "model/sequential/dense/kernel"


def make(path, *, value=0.0, initial=None, strategy=None):
    """Checkpoints of a model whose variables all have one value."""
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    optimizer = keras.optimizers.SGD(momentum=0.9, name="sgd")
    optimizer.build(model.trainable_variables)
    made = Checkpoints(
        path,
        model=model,
        optimizer=optimizer,
        strategy=strategy or make_strategy("one_device"),
        digest=DIGEST,
        initial=initial,
        steps=9,
        keep=2,
    )
    for variable in made._variables.values():
        variable.assign(np.full(variable.shape, value))
    return made


def write(path, *steps, save=Checkpoints.save):
    """Writes checkpoints whose values are their steps."""
    for step in steps:
        with make(path, value=step) as checkpoints:
            save(checkpoints, step, step / 4)
    return path / "checkpoints"


def list_names(directory):
    return sorted(path.name for path in directory.iterdir())


def restore(path, **changes):
    checkpoints = make(path, value=7, **changes)
    return checkpoints, checkpoints.restore()


def test_everything_is_restored(tmp_path):
    written = make(tmp_path)
    numbers = np.random.default_rng(0)
    for name, variable in written._variables.items():
        kind = "i" if "iteration" in name else "f"
        value = numbers.normal(size=variable.shape) * 9
        variable.assign(value.astype(kind))
    with written:
        written.save(4, 2.5)
    restored, start = restore(tmp_path)
    assert start == (4, 2.5)
    expected, found = written.copy(), restored.copy()
    assert {KERNEL, "optimizer/sgd/iteration"} < found.keys()
    np.testing.assert_equal(found, expected)


def test_a_run_begins_with_the_weights_that_it_is_given(tmp_path):
    initial = {KERNEL: np.full((2, 3), 0.25, np.float32)}
    begun, start = restore(tmp_path, initial=initial)
    assert start == (0, 0.0)
    assert (begun.copy()[KERNEL] == 0.25).all()
    assert (begun.copy()["model/sequential/dense/bias"] == 7).all()
    write(tmp_path, 2)
    resumed, start = restore(tmp_path, initial=initial)
    assert start == (2, 0.5) and (resumed.copy()[KERNEL] == 2).all()


def test_the_last_ones_and_the_best_are_kept(tmp_path):
    write(tmp_path, 8, 9, save=Checkpoints.save_best)
    directory = write(tmp_path, 8, 9, 10)
    expected = ["best-9.npz", "checkpoint-10.npz", "checkpoint-9.npz"]
    assert list_names(directory) == expected
    assert make(tmp_path).latest == directory / "checkpoint-10.npz"


def test_training_goes_on_while_a_copy_is_written(tmp_path, monkeypatch):
    goes_on, save = threading.Event(), np.savez

    def wait(*arguments, **arrays):
        assert goes_on.wait(60)
        save(*arguments, **arrays)

    monkeypatch.setattr(np, "savez", wait)
    with make(tmp_path, value=1) as checkpoints:
        checkpoints.save(3, 0.0)
        for variable in checkpoints._variables.values():
            variable.assign(variable + 1)
        goes_on.set()
        # A step is saved once, whoever asks for it.
        checkpoints.save(3, 0.0)
    restored, start = restore(tmp_path)
    assert start == (3, 0.0) and (restored.copy()[KERNEL] == 1).all()


FULL = r"checkpoint-2\.npz: No space .* is .*checkpoint-1\.npz\. Fix"
NOT_FINITE = r"not finite after step 2; .* is .*checkpoint-1\.npz: lower"


@pytest.mark.parametrize(
    ("value", "stopped", "message"),
    [(2, False, FULL), (2, True, FULL), (np.inf, False, NOT_FINITE)],
)
def test_what_cannot_be_saved_is_told_and_older_files_stay(
    tmp_path, monkeypatch, value, stopped, message
):
    directory = write(tmp_path, 1)
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(os, "replace", mock.Mock(side_effect=full))
    with (
        pytest.raises(TrainingError, match=message),
        make(tmp_path, value=value) as checkpoints,
    ):
        checkpoints.save(2, 0.0)
        if stopped:
            raise StoppedError(15)
    assert list_names(directory) == ["checkpoint-1.npz"]


def test_another_worker_compares_its_weights_and_writes_none(tmp_path):
    with make(tmp_path, strategy=SecondWorker()) as checkpoints:
        checkpoints.save(2, 0.0)
    assert not list(tmp_path.iterdir())
    message = r"weights of the workers differ after step 2: .* is None\."
    with (
        pytest.raises(TrainingError, match=message),
        make(tmp_path, strategy=SecondWorker(True)) as checkpoints,
    ):
        checkpoints.save(2, 0.0)


def test_another_worker_has_the_state_of_the_first_one(tmp_path):
    write(tmp_path, 2)
    # It reads no files; the first worker's arrays are its own plus 1 here.
    other, start = restore(tmp_path, strategy=SecondWorker(True))
    assert start == (1, 1.0) and (other.copy()[KERNEL] == 8).all()


def test_a_damaged_checkpoint_is_named_and_the_one_before_used(
    tmp_path, capsys
):
    newest = write(tmp_path, 2, 4) / "checkpoint-4.npz"
    newest.write_bytes(newest.read_bytes()[:-100])
    restored, start = restore(tmp_path)
    assert start == (2, 0.5) and (restored.copy()[KERNEL] == 2).all()
    assert f"checkpoint {newest} is damaged (" in capsys.readouterr().out
    # One that is removed between being found and being read.
    newest.with_stem("checkpoint-6").symlink_to("gone")
    assert restore(tmp_path)[1] == (2, 0.5)
    os.mkfifo(newest.with_stem("checkpoint-8"))
    newest.with_stem("checkpoint-2").unlink()
    with pytest.raises(ConfigError, match=r"no checkpoint in .* is whole: rem"):
        restore(tmp_path)
    newest.with_stem("checkpoint-9").mkdir()
    with pytest.raises(ConfigError, match=r"9\.npz is a directory where"):
        restore(tmp_path)


OTHER = np.zeros(8, np.uint8)


@pytest.mark.parametrize(
    ("changes", "stem", "message"),
    [
        ({"format": None}, "checkpoint-2", "has format 1, and this .* 3:"),
        ({"digest": OTHER}, "checkpoint-2", "another configuration: move"),
        ({"digest": None}, "checkpoint-2", "is of a run with another config"),
        ({"step": np.int64(11)}, "checkpoint-11", "ends with step 9: move"),
        ({}, "checkpoint-1", "is of step 2: give it back its name"),
        ({"seconds": np.nan}, "checkpoint-2", "not finite, in seconds: move"),
        ({"seconds": "1.5"}, "checkpoint-2", "no numbers in seconds: move"),
        ({"more": 3}, "checkpoint-2", r"more has shape \(\), this .* None"),
        ({"digest": OTHER}, "best-2", "best-2.npz is of a run with another"),
    ],
)
def test_what_is_not_of_the_run_is_refused(tmp_path, changes, stem, message):
    path = write(tmp_path, 2) / "checkpoint-2.npz"
    with np.load(path) as found:
        arrays = {**found, **changes}
    np.savez(path, **{n: v for n, v in arrays.items() if v is not None})
    path.rename(path.with_stem(stem))
    with pytest.raises(ConfigError, match=message):
        restore(tmp_path)


def test_weights_alone_are_loaded(tmp_path):
    path = write(tmp_path, 2) / "checkpoint-2.npz"
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    assert load_weights(model, path, DIGEST) == 2
    for weight in model.weights:
        np.testing.assert_array_equal(weight, np.full(weight.shape, 2))
    other = keras.Sequential([keras.Input((2,)), keras.layers.Dense(4)])
    with pytest.raises(ConfigError, match="is of another model: its model/seq"):
        load_weights(other, path, DIGEST)
    content = bytearray(path.read_bytes())
    entries = [found.start() for found in re.finditer(b"PK\1\2", content)]
    # The second array becomes a comment of the first one.
    length = entries[2] - entries[1]
    content[entries[0] + 32 : entries[0] + 34] = length.to_bytes(2, "little")
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"is damaged \(.* arrays are list"):
        load_weights(model, path, DIGEST)
    path.unlink()
    with pytest.raises(GoneError, match=r"there is no checkpoint .*-2\.npz"):
        load_weights(model, path, DIGEST)
