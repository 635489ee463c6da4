"""Two workers on this machine train as one process does."""

import functools
import signal

import numpy as np
import pytest

from tests.trainers.toy import TOY, assert_same_weights, train_losses

PLAIN, RANDOMIZED = "RoPE", "RandomizedSinusoidalEncoding"
CHANGES = {
    "steps": 30,
    "steps_per_loop": 1,
    "checkpoint_every": 5,
    "dropout": 0.0,
    "train_length": "2,3",
    "test_lengths": "5",
}
PROCESSES = {
    "one_device": {"devices": 1},
    "mirrored": {"devices": 2},
    "multi_worker": {"workers": 2},
}
# Sums over replicas are rounded in another order: up to 2.5e-6 was measured.
TOLERANCE = 2e-5

pytestmark = pytest.mark.process


def flags(path, **changes):
    chosen = {"encoding": RANDOMIZED, "strategy": "multi_worker"}
    changes = {**TOY, **CHANGES, **chosen, **changes, "workdir": path}
    return [f"--{name}={value}" for name, value in changes.items()]


@pytest.fixture(scope="module")
def trained(nursery, tmp_path_factory):
    """A function that returns the directory of undisturbed runs."""

    @functools.cache
    def train(strategy):
        path = tmp_path_factory.mktemp("runs") / "of"
        changes = {
            encoding: {**CHANGES, "encoding": encoding, "strategy": strategy}
            for encoding in (PLAIN, RANDOMIZED)
        }
        processes = nursery.start_runs(path, changes, **PROCESSES[strategy])
        for process in processes:
            assert process.wait() == 0, process.output
        return path

    return train


def test_the_losses_are_those_of_one_process(trained):
    one, two, workers = (
        {
            encoding: train_losses(trained(strategy) / encoding)
            for encoding in (PLAIN, RANDOMIZED)
        }
        for strategy in PROCESSES
    )
    assert len(workers[PLAIN]) == CHANGES["steps"]
    for found in (two, workers):
        np.testing.assert_allclose(found[PLAIN], one[PLAIN], rtol=TOLERANCE)
    # Each replica draws positions of its own, as many replicas the same.
    np.testing.assert_allclose(
        workers[RANDOMIZED], two[RANDOMIZED], rtol=TOLERANCE
    )
    ratios = np.divide(workers[RANDOMIZED], one[RANDOMIZED])
    assert np.abs(ratios - 1).max() > 1000 * TOLERANCE


def test_killed_and_stopped_workers_come_back(trained, nursery, tmp_path):
    path = tmp_path / "run"
    workers = nursery.start_workers([flags(path)] * 2, tmp_path)

    def wait_for(step):
        saved = path / "checkpoints" / f"checkpoint-{step}.npz"
        workers[0].wait_for(saved.exists)

    # The other one restarts itself, and goes on with the one that comes back.
    for index, step in ((1, 5), (0, 15)):
        wait_for(step)
        workers[index].kill()
        workers[index] = workers[index].again()
    wait_for(20)
    workers[1].send(signal.SIGTERM)
    for worker in workers:
        assert worker.wait() == 128 + signal.SIGTERM, worker.output
        assert "another worker was lost: resuming from" in worker.output
        assert worker.output.splitlines()[-1] == (
            "error: stopped by SIGTERM: run the same command again to resume."
        )
    assert not (path / "results.json").exists()
    for worker in [worker.again() for worker in workers]:
        assert worker.wait() == 0, worker.output
    undisturbed = trained("multi_worker") / RANDOMIZED
    assert_same_weights(path, undisturbed)
    assert train_losses(path) == train_losses(undisturbed)


def test_workers_with_different_flags_are_refused(nursery, tmp_path):
    commands = [flags(tmp_path / "run", seed=seed) for seed in (0, 1)]
    for worker in nursery.start_workers(commands, tmp_path):
        assert worker.wait() == 2, worker.output
        assert worker.output.splitlines()[-1] == (
            "error: the workers were started with different flags: give all "
            "of them the same command."
        )
