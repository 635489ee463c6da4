"""A killed run, resumed, ends with the weights of an undisturbed one."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.products import product
from tests.trainers.toy import TOY, assert_same_weights, run_toy, train_losses
from trainers.errors import ConfigError, TrainingError
from trainers.records.checkpoints import FORMAT, DamagedError, read_checkpoint

CHANGES = {
    "encoding": "RandomizedRelativeEncoding",
    "steps": 40,
    "steps_per_loop": 1,
    "checkpoint_every": 7,
    "dropout": 0.1,
    "buckets": 2,
    "evaluate_every": 20,
    "train_length": "2,3",
    "test_lengths": "5",
}


def command(path):
    flags = {**TOY, **CHANGES, "workdir": path}
    flags = [f"--{name}={value}" for name, value in flags.items()]
    return [sys.executable, "-m", "trainers.algorithmic", *flags]


@pytest.mark.process
def test_kill_and_resume(tmp_path):
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    subprocess.run(command(undisturbed), check=True, capture_output=True)
    process = subprocess.Popen(
        command(killed), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 600
    metrics = killed / "metrics.csv"
    # Beyond the first checkpoints, and in the midst of steps.
    while not (metrics.exists() and "\n25," in metrics.read_text()):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (killed / "results.json").exists()

    resumed = subprocess.run(
        command(killed), check=True, capture_output=True, text=True
    )
    assert "resuming after step" in resumed.stdout
    assert_same_weights(killed, undisturbed)
    assert train_losses(killed) == train_losses(undisturbed)
    assert len(train_losses(killed)) == 40


@pytest.mark.product
def test_an_interrupted_run_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    changes = {
        **CHANGES,
        "steps": 12,
        "checkpoint_every": 3,
        "evaluate_every": 6,
    }
    run_toy(tmp_path / "whole", **changes)

    def fail(losses, first_step, checkpoints):
        if first_step >= 8:
            raise TrainingError("stop")

    with monkeypatch.context() as patch:
        patch.setattr("trainers.engine.loop._check_finite", fail)
        with pytest.raises(TrainingError, match="stop"):
            run_toy(tmp_path / "parts", **changes)
    run_toy(tmp_path / "parts", **changes)
    assert_same_weights(tmp_path / "whole", tmp_path / "parts")
    assert train_losses(tmp_path / "whole") == train_losses(tmp_path / "parts")


@pytest.mark.product
def test_a_damaged_checkpoint_is_named_and_the_one_before_used(
    tmp_path, capsys
):
    changes = {"steps": 6, "steps_per_loop": 1, "checkpoint_every": 2}
    path = tmp_path / "damaged"
    run_toy(path, **changes)
    shutil.copytree(path, tmp_path / "whole")
    (path / "results.json").unlink()
    newest = path / "checkpoints" / "checkpoint-6.npz"
    newest.write_bytes(newest.read_bytes()[:-100])
    capsys.readouterr()
    run_toy(path, **changes)
    output = capsys.readouterr().out
    assert f"checkpoint {newest} is damaged" in output
    assert "resuming after step 4" in output
    assert_same_weights(tmp_path / "whole", path)


def test_no_wrong_bit_in_the_list_of_arrays_passes(tmp_path):
    path = tmp_path / "checkpoint-3.npz"
    arrays = {
        "format": np.int64(FORMAT),
        "step": np.int64(3),
        "digest": np.frombuffer(bytes.fromhex("ab12"), np.uint8),
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
                found = read_checkpoint(path, "ab12")
            except DamagedError:
                damaged += 1
                continue
            assert found.keys() == arrays.keys(), (place, bit)
            for name, values in arrays.items():
                np.testing.assert_array_equal(found[name], values)
    # Other bits are of dates, versions and permissions.
    assert damaged > 1000


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run without its results, so that it resumes."""
    path = tmp_path_factory.mktemp("finished")
    run_toy(path)
    (path / "results.json").unlink()
    return path


def copy_run(finished, path):
    """Copies a run; returns the path of its only checkpoint."""
    shutil.copytree(finished, path, dirs_exist_ok=True)
    (checkpoint,) = (path / "checkpoints").glob("checkpoint*")
    return checkpoint


def change(**changes):
    """Returns a function that changes arrays of a checkpoint; `None`: none."""

    def apply(path):
        with np.load(path) as found:
            arrays = {**found, **changes}
        np.savez(path, **{n: v for n, v in arrays.items() if v is not None})

    return apply


def make_directory(path):
    path.unlink()
    path.mkdir()


FOREIGN = {
    "format 1": (change(format=None), "has format 1, and this version"),
    "format 2": (change(format=np.int64(2)), "has format 2, and this version"),
    "format 4": (change(format=np.int64(4)), "has format 4, and this version"),
    "another run": (
        change(digest=np.zeros(8, np.uint8)),
        "is of a run with another configuration: move",
    ),
    "no digest": (change(digest=None), "is of a run with another config"),
    "beyond the end": (
        lambda path: (
            change(step=np.int64(9))(path),
            path.rename(path.with_stem("checkpoint-9")),
        ),
        "checkpoint-9.npz is of step 9, but the run ends with step 2: move",
    ),
    "another name": (
        lambda path: path.rename(path.with_stem("checkpoint-1")),
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
    "complex numbers": (
        change(seconds=np.array(1j)),
        "checkpoint-2.npz holds no numbers in seconds: move it away",
    ),
    "a format that is text": (
        change(format=np.array("three")),
        "checkpoint-2.npz holds no numbers in format: move it away",
    ),
    "several formats": (
        change(format=np.zeros(2, np.int64)),
        "no checkpoint in .* whole",
    ),
    "a pipe": (
        lambda path: (path.unlink(), os.mkfifo(path)),
        "no checkpoint in .* whole",
    ),
    "another model": (
        change(more=np.zeros(3)),
        r"is of another model: its more has shape \(3,\), this model's None",
    ),
    "another run's best": (
        lambda path: (
            change(digest=np.zeros(8, np.uint8))(path),
            path.rename(path.with_stem("best-2")),
        ),
        "best-2.npz is of a run with another configuration: move",
    ),
    "a directory": (make_directory, "checkpoint-2.npz is a directory where"),
    "damaged": (
        lambda path: path.write_bytes(b""),
        "no checkpoint in .* whole",
    ),
    "no configuration": (
        lambda path: (path.parents[1] / "config.json").unlink(),
        r"metrics\.csv belongs to a run, but there is no config",
    ),
}


@pytest.mark.parametrize(
    "name",
    product(FOREIGN, keep=("another run", "not finite", "no configuration")),
)
def test_a_checkpoint_that_is_not_of_the_run_is_refused(
    finished, tmp_path, name
):
    make_foreign, message = FOREIGN[name]
    make_foreign(copy_run(finished, tmp_path))
    with pytest.raises(ConfigError, match=message) as caught:
        run_toy(tmp_path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "results.json").exists()


@pytest.mark.product
def test_a_longer_run_goes_on_where_a_finished_one_ended(tmp_path, capsys):
    changes = {"steps_per_loop": 1, "dropout": 0.1}
    first = run_toy(tmp_path / "parts", steps=3, **changes)
    longer = run_toy(tmp_path / "parts", steps=6, **changes)
    assert "resuming after step 3" in capsys.readouterr().out
    whole = run_toy(tmp_path / "whole", steps=6, **changes)
    assert_same_weights(tmp_path / "whole", tmp_path / "parts")
    assert longer["final"] == whole["final"] != first["final"]
    assert longer["digest"] == first["digest"]
    assert run_toy(tmp_path / "parts", steps=6, **changes) == longer
    assert "already finished" in capsys.readouterr().out


@pytest.mark.product
def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    # The loss of the first step is that of the weights before it.
    with pytest.raises(TrainingError, match="weights are not finite after"):
        run_toy(tmp_path, {"learning_rate": float("inf")}, steps=1)
    assert not list((tmp_path / "checkpoints").glob("*"))


def test_the_last_checkpoints_are_kept_and_the_best(tmp_path):
    changes = {"steps": 6, "steps_per_loop": 1, "checkpoint_every": 1}
    run_toy(tmp_path, keep_checkpoints=2, evaluate_every=2, **changes)
    kept = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    results = json.loads((tmp_path / "results.json").read_text())
    best = results["best"]["step"]
    assert kept == [
        f"best-{best}.npz",
        "checkpoint-5.npz",
        "checkpoint-6.npz",
    ]


@pytest.mark.process
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_full_disk_leaves_the_checkpoints_there_were(tmp_path):
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=96k", "none", str(tmp_path)],
        check=True,
    )
    changes = {"steps": 60, "steps_per_loop": 1, "checkpoint_every": 1}
    try:
        with pytest.raises(TrainingError, match="No space left") as caught:
            run_toy(tmp_path, keep_checkpoints=60, **changes)
        assert "cannot write" in str(caught.value)
        subprocess.run(
            ["mount", "-o", "remount,size=9m", str(tmp_path)], check=True
        )
        run_toy(tmp_path, **{**changes, "keep_checkpoints": 60})
        whole = tmp_path / "whole"
        run_toy(whole, **changes)
        assert_same_weights(tmp_path, whole)
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)
