"""Checkpoints: what they keep, and what they refuse.

Resumption after kills is tested with `benchmarks.faults.file_operations`.
"""

import errno
import os

import keras
import numpy as np
import pytest

from tests.trainers.devices.worker import SecondWorker
from trainers.devices.tensorflow_strategy import make_strategy
from trainers.errors import ConfigError, StoppedError, TrainingError
from trainers.records.checkpoints import (
    FORMAT,
    Checkpoints,
    DamagedError,
    GoneError,
    load_weights,
    read_checkpoint,
)

DIGEST = "ab12"
KERNEL = "model/sequential/dense/kernel"


def make(path, *, value=0.0, width=3, initial=None, strategy=None, **changes):
    """Checkpoints of a model whose variables all have one value."""
    layers = [keras.Input((2,)), keras.layers.Dense(width)]
    model = keras.Sequential(layers)
    optimizer = keras.optimizers.SGD(momentum=0.9)
    optimizer.build(model.trainable_variables)
    made = Checkpoints(
        path,
        model=model,
        optimizer=optimizer,
        strategy=strategy or make_strategy("one_device"),
        digest=DIGEST,
        initial=initial,
        **{"steps": 9, "keep": 2, **changes},
    )
    for variable in made._variables.values():
        variable.assign(np.full(variable.shape, value))
    return made


def write(path, *steps, best=()):
    """Writes checkpoints whose values are their steps."""
    for kind, numbers in (("save", steps), ("save_best", best)):
        for step in numbers:
            with make(path, value=step) as checkpoints:
                getattr(checkpoints, kind)(step, step / 4)
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
    assert {KERNEL, "optimizer/sgd/iteration"} < found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


def test_the_last_ones_and_the_best_are_kept(tmp_path):
    directory = write(tmp_path, 8, 9, 10, best=(8, 9))
    expected = ["best-9.npz", "checkpoint-10.npz", "checkpoint-9.npz"]
    assert list_names(directory) == expected
    assert make(tmp_path).latest == directory / "checkpoint-10.npz"


@pytest.mark.parametrize("stopped", [False, True])
def test_a_failed_write_is_told_and_older_files_stay(
    tmp_path, monkeypatch, stopped
):
    directory = write(tmp_path, 1)

    def fail(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    message = (
        r"cannot write .*checkpoint-2\.npz: No space left on device; the last "
        r"whole checkpoint is .*checkpoint-1\.npz\. Fix"
    )
    with (
        pytest.raises(TrainingError, match=message),
        make(tmp_path, value=2) as checkpoints,
    ):
        checkpoints.save(2, 0.0)
        if stopped:
            raise StoppedError(15)
    assert list_names(directory) == ["checkpoint-1.npz"]


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    directory = write(tmp_path, 1)
    message = r"not finite after step 2; .* is .*checkpoint-1\.npz: lower"
    with (
        pytest.raises(TrainingError, match=message),
        make(tmp_path, value=np.inf) as checkpoints,
    ):
        checkpoints.save(2, 0.0)
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
    other, start = restore(tmp_path, strategy=SecondWorker())
    # It reads no files; the first worker's arrays are its own plus 1 here.
    assert start == (0, 0.0)
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


def change(**changes):
    """Returns a function that changes arrays of a checkpoint; `None`: none."""

    def apply(path):
        with np.load(path) as found:
            arrays = {**found, **changes}
        np.savez(path, **{n: v for n, v in arrays.items() if v is not None})

    return apply


def rename(stem, **changes):
    def apply(path):
        change(**changes)(path)
        path.rename(path.with_stem(stem))

    return apply


def make_directory(path):
    path.unlink()
    path.mkdir()


def make_pipe(path):
    path.unlink()
    os.mkfifo(path)


OTHER = np.zeros(8, np.uint8)
NOT_WHOLE = "no checkpoint in .* is whole: remove it to start from the begin"
FOREIGN = {
    "format 1": (change(format=None), "has format 1, and this .* format 3:"),
    "format 4": (change(format=np.int64(4)), "has format 4, and this"),
    "another run": (change(digest=OTHER), "another configuration: move it"),
    "no digest": (change(digest=None), "is of a run with another config"),
    "beyond the end": (
        rename("checkpoint-11", step=np.int64(11)),
        "checkpoint-11.npz is of step 11, but the run ends with step 9: move",
    ),
    "another name": (
        rename("checkpoint-1"),
        "checkpoint-1.npz is of step 2: give it back its name",
    ),
    "not finite": (
        change(seconds=np.float64("nan")),
        "checkpoint-2.npz holds numbers that are not finite, in seconds",
    ),
    "text": (
        change(seconds=np.array("1.5")),
        "checkpoint-2.npz holds no numbers in seconds: move it away",
    ),
    "complex numbers": (change(seconds=np.array(1j)), "no numbers in seconds"),
    "a format of text": (change(format=np.array("3")), "no numbers in format"),
    "several formats": (change(format=np.zeros(2, np.int64)), NOT_WHOLE),
    "more arrays": (
        change(more=np.zeros(3)),
        r"is of another model: its more has shape \(3,\), this model's None",
    ),
    "fewer arrays": (change(**{KERNEL: None}), r"kernel has shape None, this"),
    "another run's best": (
        rename("best-2", digest=OTHER),
        "best-2.npz is of a run with another configuration: move",
    ),
    "a directory": (make_directory, "checkpoint-2.npz is a directory where"),
    "a pipe": (make_pipe, NOT_WHOLE),
    "empty": (lambda path: path.write_bytes(b""), NOT_WHOLE),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_not_of_the_run_is_refused(tmp_path, name):
    make_foreign, message = FOREIGN[name]
    make_foreign(write(tmp_path, 2) / "checkpoint-2.npz")
    with pytest.raises(ConfigError, match=message) as caught:
        restore(tmp_path)
    assert "\n" not in str(caught.value)


def test_weights_alone_are_loaded(tmp_path):
    path = write(tmp_path, 2) / "checkpoint-2.npz"
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    assert load_weights(model, path, DIGEST) == 2
    for weight in model.weights:
        np.testing.assert_array_equal(weight, np.full(weight.shape, 2))
    other = keras.Sequential([keras.Input((2,)), keras.layers.Dense(4)])
    with pytest.raises(ConfigError, match="is of another model: its model/seq"):
        load_weights(other, path, DIGEST)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ConfigError, match=r"checkpoint-2\.npz is damaged \("):
        load_weights(model, path, DIGEST)
    path.unlink()
    with pytest.raises(GoneError, match=r"there is no checkpoint .*-2\.npz"):
        load_weights(model, path, DIGEST)


def test_no_wrong_bit_in_the_list_of_arrays_passes(tmp_path):
    path = tmp_path / "checkpoint-3.npz"
    arrays = {
        "format": np.int64(FORMAT),
        "step": np.int64(3),
        "digest": np.frombuffer(bytes.fromhex(DIGEST), np.uint8),
        "weights": np.arange(5.0),
    }
    np.savez(path, **arrays)
    whole = path.read_bytes()
    damaged = 0
    for place in range(whole.index(b"PK\1\2"), len(whole)):
        for bit in range(8):
            content = bytearray(whole)
            content[place] ^= 1 << bit
            path.write_bytes(content)
            try:
                found = read_checkpoint(path, DIGEST)
            except DamagedError:
                damaged += 1
                continue
            assert found.keys() == arrays.keys(), (place, bit)
            for name, values in arrays.items():
                np.testing.assert_array_equal(found[name], values)
    # Other bits are of dates, versions and permissions.
    assert damaged > 1000
