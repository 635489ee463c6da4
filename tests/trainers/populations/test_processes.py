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
from tests.shell import run_on_jax, run_python
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


def start(directory, environment, **flags):
    """Starts the program where TensorFlow cannot be imported."""
    (directory / "sitecustomize.py").write_text(WITHOUT_TENSORFLOW)
    paths = f"{directory}{os.pathsep}{ROOT}"
    environment = {**environment, "PYTHONPATH": paths}
    environment.pop("KERAS_BACKEND", None)
    words = [f"--{name}={value}" for name, value in flags.items()]
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


@pytest.fixture(scope="module")
def undisturbed(environment, tmp_path_factory):
    """Directory and output of a run without TensorFlow."""
    path = tmp_path_factory.mktemp("population")
    output = finish(start(path, environment, **TOY, workdir="run"))
    return path / "run", output


def test_a_run_needs_no_tensorflow_and_reports_every_member(undisturbed):
    path, output = undisturbed
    assert "2 models, 1 at once, on cpu" in output
    assert "step 40/40, loss " in output
    results = json.loads((path / "results.json").read_text())
    assert "tensorflow" not in results["versions"]
    found = [(m["seed"], m["learning_rate"]) for m in results["members"]]
    assert found == [(0, 1e-3), (3, 1e-3)]
    scores = [member["score"] for member in results["members"]]
    for member in results["members"]:
        assert member["accuracy_by_length"].keys() == {"1", "2", "3"}
        assert member["score"] == member["accuracy_by_length"]["3"]
    assert len({member["train_loss"] for member in results["members"]}) == 2
    assert results["all"]["best"] == results["final"]["score"] == max(scores)
    assert results["all"]["mean"] == pytest.approx(np.mean(scores))
    assert results["all"] == results["by_learning_rate"]["0.001"]
    assert results["floor_by_length"].keys() == {"1", "2", "3"}
    train = results["train"]
    assert train["steps"] == 40
    assert train["models_per_hour"] == pytest.approx(
        3600 * 2 / train["seconds"]
    )
    with (path / "losses.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0][2:] == [
        f"seed {seed}, learning rate 0.001" for seed in (0, 3)
    ]
    assert [int(row[0]) for row in rows[1:]] == [*range(2, 41, 2)]


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_a_stopped_run_ends_as_an_undisturbed_one(
    undisturbed, environment, number, status, tmp_path
):
    path, _ = undisturbed
    flags = {**TOY, "workdir": "run"}
    process = start(tmp_path, environment, **flags)
    while not list(tmp_path.glob("run/checkpoints/checkpoint-*.npz")):
        assert process.poll() is None, process.stdout.read()
    process.send_signal(number)
    finish(process, status)
    output = finish(start(tmp_path, environment, **flags))
    assert "resuming after step " in output
    assert_same_weights(path, tmp_path / "run")
    results = [
        json.loads((run / "results.json").read_text())
        for run in (path, tmp_path / "run")
    ]
    for name in ("members", "all", "final", "by_learning_rate"):
        assert results[0][name] == results[1][name]


@pytest.fixture(scope="module")
def outputs(environment, tmp_path_factory):
    path = tmp_path_factory.mktemp("outputs") / "outputs.json"
    module = "tests.trainers.populations.outputs"
    run_on_jax(module, path, **environment)
    return json.loads(path.read_text())


def assert_alike(found, expected):
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=2e-6)
    np.testing.assert_array_equal(found["begin"], expected["begin"])
    # Relative to what training has changed. Both round differently, and
    # processors differ in how.
    one, other = (
        np.subtract(x["weights"], x["begin"]) for x in (found, expected)
    )
    assert np.linalg.norm(one - other) < 1e-4 * np.linalg.norm(other)
    np.testing.assert_allclose(found["sums"], expected["sums"], rtol=1e-5)


@pytest.mark.parametrize(
    "names", [("together", "apart"), ("others together", "others apart")]
)
def test_members_equal_models_that_are_trained_alone(names, outputs):
    together, apart = (outputs[name] for name in names)
    for number, alone in zip((0, 3), apart, strict=True):
        assert_alike(together[number], alone)


def test_members_that_are_computed_later_are_the_same(outputs):
    together = outputs["together"]
    for one, some in zip(together, outputs["two at once"], strict=True):
        assert_alike(one, some)
    # Seeds and learning rates make a difference.
    for name in ("losses", "weights"):
        assert len({tuple(one[name]) for one in together}) == 4


def test_steps_are_those_of_the_trainer(outputs):
    assert_alike(outputs["together"][3], outputs["trainer"])
    assert_alike(outputs["others together"][3], outputs["other trainer"])


def test_a_run_in_pieces_ends_as_a_whole_one(outputs):
    whole, pieces = outputs["whole"], outputs["pieces"]
    assert (whole.pop("starts"), pieces.pop("starts")) == (1, 5)
    assert whole == pieces


def test_members_train_on_where_others_diverge(outputs):
    beside = outputs["beside diverging"]
    assert beside.pop("diverged") == {"2": 2, "3": 2}
    assert_alike(beside, outputs["together"][3])
    assert "the last to diverge, in step 2, was seed " in outputs["error"]


def test_results_leave_out_members_that_have_diverged(outputs):
    whole, pieces = outputs["diverging"]
    assert (whole.pop("starts"), pieces.pop("starts")) == (1, 5)
    assert whole == pieces
    *healthy, third, fourth = whole["members"]
    scores = [member["score"] for member in healthy]
    expected = [member["score"] for member in outputs["whole"]["members"]]
    assert scores == pytest.approx(expected)
    assert [third, fourth] == [
        {"seed": seed, "learning_rate": 1e30, "diverged_in_step": 2}
        for seed in (0, 5)
    ]
    assert whole["all"]["mean"] == pytest.approx(np.mean(scores))
    assert whole["all"] == whole["by_learning_rate"]["0.01"]
    assert whole["by_learning_rate"]["1e+30"]["members"] == 0


def test_another_backend_is_refused(tmp_path):
    done = run_python(
        *("-m", "trainers.population"), cwd=tmp_path, KERAS_BACKEND="tensorflow"
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line == (
        "error: populations are trained by JAX, but Keras is set to "
        "tensorflow: set KERAS_BACKEND=jax."
    )
    assert not list(tmp_path.iterdir())
