"""Runs that are alike: on two devices, in parts, compiled, resumed, on JAX.

JAX has a process of its own, as this one runs on TensorFlow.
"""

import functools
import json
import shutil

import numpy as np
import pytest

from tests.shell import run_python
from tests.trainers.toy import assert_same_weights, run_toy, train_losses
from trainers.errors import TrainingError

SHORT = {
    "steps": 6,
    "steps_per_loop": 1,
    "checkpoint_every": 3,
    "evaluation_examples": 4,
    "learning_rate": 1e-2,
    "dropout": 0.0,
}
PLAIN = {
    **SHORT,
    "encoding": "RelativeEncoding",
    "train_length": "2,3",
    "test_lengths": "5",
    "buckets": 2,
}
MIRRORED = {"strategy": "mirrored"}
RUNS = {
    "strings": PLAIN,
    "loops": {
        **SHORT,
        "trainer": "sequence_to_answer",
        "task": "aligned_addition",
        "train_length": "2-3",
        "test_lengths": "4",
        "generated_examples": 0,
        "encoding": "NoPE",
        "attention": "ForgettingAttention",
        "loops": "length",
    },
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A function that returns the directory of an undisturbed run."""

    @functools.cache
    def train(name):
        path = tmp_path_factory.mktemp("run") / name
        run_toy(path, **RUNS[name])
        return path

    return train


def go_back(path, other):
    """Copies a run as it was after its first checkpoint."""
    shutil.copytree(path, other)
    (other / "results.json").unlink()
    (other / "checkpoints" / "checkpoint-6.npz").unlink()


def assert_same_losses(path, expected, tolerance=1e-5):
    found = train_losses(path)
    assert len(found) == SHORT["steps"]
    np.testing.assert_allclose(found, train_losses(expected), rtol=tolerance)


@pytest.mark.product
@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("strings", {**MIRRORED, "compile": "always"}),
        ("loops", {**MIRRORED, "gradient_accumulation_steps": 2}),
    ],
)
def test_devices_parts_and_compilers_give_the_same_losses(
    whole, tmp_path, name, changes
):
    run_toy(tmp_path / "run", **{**RUNS[name], **changes})
    assert len({*train_losses(whole(name))}) > 2
    assert_same_losses(tmp_path / "run", whole(name))


@pytest.mark.product
def test_float16_trains_beside_float32(tmp_path):
    losses = []
    for changes in ({}, {**MIRRORED, "precision": "mixed_float16"}):
        path = tmp_path / str(len(changes))
        long = {"steps": 30, "steps_per_loop": 30, "train_length": "3"}
        run_toy(path, dropout=0.0, **long, **changes)
        losses += train_losses(path)
    assert losses[1] == pytest.approx(losses[0], abs=0.02)


@pytest.mark.product
def test_a_loss_that_is_not_finite_stops_the_run(tmp_path):
    with pytest.raises(TrainingError, match=r"the loss of step \d+ is"):
        run_toy(tmp_path, {"learning_rate": 1e30}, steps=20, clip_norm=1e30)


DRIVER = """
import json, os, pathlib, sys
os.environ["KERAS_BACKEND"] = "jax"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
from tests.trainers.engine.test_training_steps import go_back
from tests.trainers.toy import run_toy
from trainers.errors import ConfigError
path = pathlib.Path(sys.argv[1])
for name, changes in json.loads(sys.argv[2]).items():
    if name == "resumed":
        go_back(path / "drawn", path / name)
    try:
        run_toy(path / name, **changes)
    except ConfigError as error:
        print("refused:", error)
"""
RANDOM = {"encoding": "RandomizedRoPE", "dropout": 0.1}
ON_JAX = {
    "one": {"strategy": "one_device"},
    "both": {"gradient_accumulation_steps": 2},
    "half": {"precision": "mixed_float16"},
    "drawn": RANDOM,
    "resumed": RANDOM,
    "remote": {"strategy": "tpu", "tpu": "mine"},
    "tpu": {"strategy": "tpu"},
}


@pytest.fixture(scope="module")
def jax_runs(whole, tmp_path_factory):
    """The directory of all runs on JAX, and what they print."""
    path = tmp_path_factory.mktemp("on_jax")
    for name in RUNS:
        go_back(whole(name), path / name)
    started = {
        name: {**PLAIN, "strategy": "auto", **changes}
        for name, changes in ON_JAX.items()
    }
    done = run_python("-c", DRIVER, str(path), json.dumps(RUNS | started))
    return path, done.stdout


@pytest.mark.process
def test_runs_of_tensorflow_go_on_alike_on_jax(whole, jax_runs):
    path, _ = jax_runs
    for name in RUNS:
        assert_same_losses(path / name, whole(name), 1e-4)
    results = [
        json.loads((run / "results.json").read_text())["final"]
        for run in (whole("strings"), path / "strings")
    ]
    first, second = ([*of["loss_by_length"].values()] for of in results)
    np.testing.assert_allclose(first, second, rtol=1e-3)


@pytest.mark.process
def test_runs_on_jax_are_alike(jax_runs):
    path, output = jax_runs
    assert "2 replica(s), here cpu:0, cpu:1; global batch 8" in output
    assert_same_losses(path / "both", path / "one", 1e-4)
    half, alone = (train_losses(path / name) for name in ("half", "one"))
    # The first steps of a scale that is too large are left out.
    np.testing.assert_allclose(half[0], alone[0], atol=2e-3)
    assert np.isfinite(half).all()
    assert_same_weights(path / "drawn", path / "resumed")
    assert train_losses(path / "drawn") == train_losses(path / "resumed")
    for message in (
        "JAX runs on the hosts of a TPU themselves: remove --tpu",
        "--strategy=tpu found no TPU",
    ):
        assert f"refused: {message}" in output
