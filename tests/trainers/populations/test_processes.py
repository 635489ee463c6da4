"""Populations, in processes of their own: this one runs on TensorFlow."""

import csv
import json

import pytest

from tests.checkout import ROOT
from tests.shell import WITHOUT_TENSORFLOW, run_on_jax, run_python
from tests.trainers.populations.toy import TOY

pytestmark = pytest.mark.process

FLAGS = {
    **TOY,
    "task": "bucket_sort",
    "encoding": "RandomizedRoPE",
    "seeds": "0,3",
    "train_length": "1-2",
    "test_lengths": "3",
    "steps": 40,
    "steps_per_loop": 2,
    "checkpoint_every": 4,
    "workdir": "run",
}


def test_a_run_needs_no_tensorflow_and_reports_every_member(
    tmp_path, monkeypatch
):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_TENSORFLOW)
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    words = [f"--{name}={value}" for name, value in FLAGS.items()]
    variables = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "JAX_PLATFORMS": "cpu"}
    done = run_python(
        *("-m", "trainers.population", *words), cwd=tmp_path, **variables
    )
    assert "2 models, 1 at once, on cpu" in done.stdout, done.stderr
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert "tensorflow" not in results["versions"]
    members, train = results["members"], results["train"]
    found = [(m["seed"], m["learning_rate"]) for m in members]
    assert found == [(0, 1e-3), (3, 1e-3)]
    for member in members:
        assert member["accuracy_by_length"].keys() == {"1", "2", "3"}
    assert len({member["train_loss"] for member in members}) == 2
    assert results["final"] in members and results["all"]["members"] == 2
    assert results["floor_by_length"].keys() == {"1", "2", "3"}
    assert train["steps"] == 40
    per_hour = 3600 * 2 / train["seconds"]
    assert train["models_per_hour"] == pytest.approx(per_hour)
    with (tmp_path / "run" / "losses.csv").open() as file:
        head, *rows = csv.reader(file)
    assert head[2:] == [f"seed {seed}, learning rate 0.001" for seed in (0, 3)]
    assert [int(row[0]) for row in rows] == [*range(2, 41, 2)]


def test_populations_compute_what_other_programs_do(tmp_path):
    # The pieces of a run share what they compile.
    variables = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    run_on_jax("tests.trainers.populations.jax_checks", **variables)
