"""Training on JAX, in a process of its own: this one runs on TensorFlow."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from tests.trainers.toy import assert_same_weights, run_toy, train_losses

pytestmark = pytest.mark.process

STEPS = {
    "steps": 10,
    "steps_per_loop": 1,
    "checkpoint_every": 4,
    "evaluate_every": 5,
    "dropout": 0.0,
    "train_length": "2,3",
    "test_lengths": "5",
    "strategy": "auto",
    "learning_rate": 1e-2,
}
ENCODINGS = {
    "RoPE": {"encoding": "RoPE", "buckets": 2},
    "RelativeEncoding": {"encoding": "RelativeEncoding"},
}

DRIVER = """
import json, os, pathlib, sys
os.environ["KERAS_BACKEND"] = "jax"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
from tests.trainers.toy import run_toy
from trainers.errors import ConfigError
for path, changes in json.loads(sys.argv[1]):
    try:
        run_toy(pathlib.Path(path), **changes)
    except ConfigError as error:
        print("refused:", error)
"""


def on_jax(*runs):
    """What the runs print, each of a path and the changes of a toy run."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            DRIVER,
            json.dumps([[str(path), changes] for path, changes in runs]),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert not done.returncode, done.stderr[-3000:]
    return done.stdout


def go_back(path, other, step):
    """Copies a run as it was after a checkpoint."""
    shutil.copytree(path, other)
    (other / "results.json").unlink()
    for found in (other / "checkpoints").glob("checkpoint-*.npz"):
        if int(found.stem.split("-")[1]) > step:
            found.unlink()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs")
    drawn = {**STEPS, "encoding": "RandomizedRoPE", "dropout": 0.1}
    for encoding, changes in ENCODINGS.items():
        run_toy(path / encoding, **{**STEPS, **changes})
        go_back(path / encoding, path / f"{encoding}_on_jax", 4)
    output = on_jax(
        *(
            (path / f"{encoding}_on_jax", {**STEPS, **changes})
            for encoding, changes in ENCODINGS.items()
        ),
        (path / "one", {**STEPS, "strategy": "one_device"}),
        (path / "both", {**STEPS, "strategy": "mirrored"}),
        (path / "parts", {**STEPS, "gradient_accumulation_steps": 2}),
        (path / "half", {**STEPS, "precision": "mixed_float16"}),
        (path / "drawn", drawn),
        (path / "odd", {**STEPS, "batch_size": 9}),
        (path / "remote", {**STEPS, "strategy": "tpu", "tpu": "mine"}),
        (path / "tpu", {**STEPS, "strategy": "tpu"}),
    )
    go_back(path / "drawn", path / "resumed", 8)
    on_jax((path / "resumed", drawn))
    return path, output


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_run_of_tensorflow_goes_on_alike(runs, encoding):
    path, _ = runs
    on_tensorflow = train_losses(path / encoding)
    gone_on = train_losses(path / f"{encoding}_on_jax")
    assert len(gone_on) == 10
    np.testing.assert_allclose(gone_on, on_tensorflow, rtol=1e-4)


@pytest.mark.parametrize("name", ["both", "parts"])
def test_devices_and_parts_share_the_work(runs, name):
    path, output = runs
    assert "2 replica(s), here cpu:0, cpu:1; global batch 8" in output
    np.testing.assert_allclose(
        train_losses(path / name), train_losses(path / "one"), rtol=1e-4
    )


def test_float16_is_near(runs):
    path, _ = runs
    half, whole = train_losses(path / "half"), train_losses(path / "one")
    # The first steps of a scale that is too large are left out.
    np.testing.assert_allclose(half[0], whole[0], atol=2e-3)
    assert np.isfinite(half).all()


def test_a_resumed_run_ends_with_the_same_weights(runs):
    path, _ = runs
    assert_same_weights(path / "drawn", path / "resumed")
    assert train_losses(path / "drawn") == train_losses(path / "resumed")


def test_evaluations_are_those_of_tensorflow(runs):
    path, _ = runs
    results = [
        json.loads((path / name / "results.json").read_text())["final"]
        for name in ("RoPE", "RoPE_on_jax")
    ]
    for metric in ("accuracy_by_length", "loss_by_length"):
        first, second = (list(found[metric].values()) for found in results)
        np.testing.assert_allclose(first, second, rtol=1e-3)


@pytest.mark.parametrize(
    "message",
    [
        "2 replica(s) cannot share a global batch of 9",
        "leave --tpu out",
        "--strategy=tpu found no TPU",
    ],
)
def test_what_cannot_be_is_refused(runs, message):
    _, output = runs
    assert f"refused: {message}" in output or message in output
