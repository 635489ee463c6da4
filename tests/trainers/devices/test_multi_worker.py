"""Two workers on this machine train as one process does."""

import json
import shutil
import signal

import numpy as np
import pytest

from benchmarks.faults.workers import make_environments
from tests.trainers.toy import TOY, assert_same_weights, run_toy, train_losses
from tests.trainers.workers import Started

FLAGS = {
    **TOY,
    "encoding": "RandomizedSinusoidalEncoding",
    "strategy": "multi_worker",
    "steps": 25,
    "steps_per_loop": 1,
    "checkpoint_every": 5,
    "dropout": 0.0,
    "train_length": "2,3",
    "test_lengths": "5",
}

pytestmark = pytest.mark.process


def start(path):
    """Starts two workers of one run on this machine."""
    flags = {**FLAGS, "workdir": path}
    words = [f"--{name}={value}" for name, value in flags.items()]
    return [
        Started(words, path.parent / f"{number}.log", environment=environment)
        for number, environment in enumerate(make_environments(2))
    ]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("undisturbed") / "run"
    # Each checkpoint compares the weights of the workers.
    for process in start(path):
        assert process.wait() == 0, process.output
    return path


def test_workers_train_as_replicas_of_one_process(undisturbed, tmp_path):
    run_toy(tmp_path, **{**FLAGS, "strategy": "mirrored"})
    # Each replica draws positions of its own. Sums over replicas are rounded
    # in another order: up to 2.5e-6 was measured.
    losses = train_losses(undisturbed)
    assert len(losses) == FLAGS["steps"]
    np.testing.assert_allclose(losses, train_losses(tmp_path), rtol=2e-5)


def test_killed_and_stopped_workers_come_back(undisturbed, tmp_path):
    path = tmp_path / "run"
    first, second = start(path)

    def wait_for(step):
        saved = path / "checkpoints" / f"checkpoint-{step}.npz"
        first.wait_for(saved.exists, second)

    wait_for(5)
    # The other one restarts itself, and goes on with the one that comes back.
    first.kill()
    first = first.again()
    wait_for(15)
    second.send(signal.SIGTERM)
    for worker in (first, second):
        assert worker.wait() == 128 + signal.SIGTERM, worker.output
        assert worker.output.splitlines()[-1] == (
            "error: stopped by SIGTERM: run the same command again to resume."
        )
    assert "another worker was lost: resuming from" in second.output
    assert not (path / "results.json").exists()
    for worker in [first.again(), second.again()]:
        assert worker.wait() == 0, worker.output
    assert_same_weights(path, undisturbed)
    assert train_losses(path) == train_losses(undisturbed)


def test_workers_that_are_lost_after_the_last_evaluation(undisturbed, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(undisturbed, path)
    results = json.loads((path / "results.json").read_text())
    (path / "results.json").unlink()
    # The first worker alone still has the evaluation.
    for worker in start(path):
        assert worker.wait() == 0, worker.output
    again = json.loads((path / "results.json").read_text())
    assert again["final"] == results["final"]
