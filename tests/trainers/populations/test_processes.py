"""Populations, in processes of their own: this one runs on TensorFlow."""

import csv
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from tests.checkout import ROOT
from tests.shell import run_on_jax
from tests.trainers.toy import assert_same_weights

pytestmark = pytest.mark.process

WITHOUT_TENSORFLOW = """
import sys


class WithoutTensorFlow:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "tensorflow":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, WithoutTensorFlow)
"""
TOY = {
    "task": "bucket_sort",
    "encoding": "RandomizedRoPE",
    "seeds": "0,3",
    "num_layers": 1,
    "num_heads": 2,
    "model_dim": 8,
    "batch_size": 8,
    "train_length": "1-2",
    "test_lengths": "3",
    "buckets": 1,
    "evaluation_examples": 10,
    "steps": 40,
    "steps_per_loop": 2,
    "checkpoint_every": 4,
    "workdir": "run",
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Environment of all processes, which share what they compile."""
    return {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("programs")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }


def start(directory, environment):
    """Starts the program where TensorFlow cannot be imported."""
    (directory / "sitecustomize.py").write_text(WITHOUT_TENSORFLOW)
    environment = {**environment, "PYTHONPATH": f"{directory}:{ROOT}"}
    environment.pop("KERAS_BACKEND", None)
    words = [f"--{name}={value}" for name, value in TOY.items()]
    return subprocess.Popen(
        [sys.executable, "-m", "trainers.population", *words],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process, status=0):
    output, _ = process.communicate(timeout=600)
    assert process.returncode == status, output
    return output


def read_results(path):
    return json.loads((path / "run" / "results.json").read_text())


@pytest.fixture(scope="module")
def undisturbed(environment, tmp_path_factory):
    """Directory and output of a run without TensorFlow."""
    path = tmp_path_factory.mktemp("population")
    return path, finish(start(path, environment))


def test_a_run_needs_no_tensorflow_and_reports_every_member(undisturbed):
    path, output = undisturbed
    assert "2 models, 1 at once, on cpu" in output
    assert "step 40/40, loss " in output
    results = read_results(path)
    assert "tensorflow" not in results["versions"]
    members, train = results["members"], results["train"]
    found = [(m["seed"], m["learning_rate"]) for m in members]
    assert found == [(0, 1e-3), (3, 1e-3)]
    scores = [member["score"] for member in members]
    for member in members:
        assert member["accuracy_by_length"].keys() == {"1", "2", "3"}
        assert member["score"] == member["accuracy_by_length"]["3"]
    assert len({member["train_loss"] for member in members}) == 2
    assert results["all"]["best"] == results["final"]["score"] == max(scores)
    assert results["all"]["mean"] == pytest.approx(np.mean(scores))
    assert results["all"] == results["by_learning_rate"]["0.001"]
    assert results["floor_by_length"].keys() == {"1", "2", "3"}
    assert train["steps"] == 40
    per_hour = 3600 * 2 / train["seconds"]
    assert train["models_per_hour"] == pytest.approx(per_hour)
    with (path / "run" / "losses.csv").open() as file:
        head, *rows = csv.reader(file)
    assert head[2:] == [f"seed {seed}, learning rate 0.001" for seed in (0, 3)]
    assert [int(row[0]) for row in rows] == [*range(2, 41, 2)]


def find_checkpoints(path):
    return {*path.glob("run/checkpoints/checkpoint-*.npz")}


def test_a_stopped_and_killed_run_ends_as_an_undisturbed_one(
    undisturbed, environment, tmp_path
):
    for number, status in ((signal.SIGTERM, 143), (signal.SIGKILL, -9)):
        before = find_checkpoints(tmp_path)
        process = start(tmp_path, environment)
        while not find_checkpoints(tmp_path) - before:
            assert process.poll() is None, process.stdout.read()
        process.send_signal(number)
        finish(process, status)
    output = finish(start(tmp_path, environment))
    assert "resuming after step " in output
    assert_same_weights(undisturbed[0] / "run", tmp_path / "run")
    one, other = read_results(undisturbed[0]), read_results(tmp_path)
    for name in ("members", "all", "final", "by_learning_rate"):
        assert one[name] == other[name]


def test_populations_compute_what_other_programs_do(environment):
    run_on_jax("tests.trainers.populations.jax_checks", **environment)
