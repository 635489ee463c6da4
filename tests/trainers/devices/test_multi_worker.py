"""Two workers on this machine train as one process does."""

import functools
import json
import shutil

import numpy as np
import pytest

from tests.trainers.toy import TOY, assert_same_weights, train_losses

FAMILIES = ["NoPE", "SinusoidalEncoding", "RoPE", "RelativeEncoding", "ALiBi"]
RANDOMIZED = "RandomizedSinusoidalEncoding"
QUICK = ["RoPE", RANDOMIZED]
CHANGES = {
    "steps": 50,
    "steps_per_loop": 1,
    "checkpoint_every": 10,
    "dropout": 0.0,
    "train_length": "2,3",
    "test_lengths": "5",
}
PROCESSES = {
    "one_device": {"devices": 1},
    "mirrored": {"devices": 2},
    "mirrored on 4": {"devices": 4},
    "multi_worker": {"workers": 2},
}
# Sums over replicas are rounded in another order: up to 2.5e-6 was measured.
TOLERANCE = 2e-5


def of(encoding, strategy):
    return {**CHANGES, "encoding": encoding, "strategy": strategy}


def flags(path, **changes):
    changes = {**TOY, **of(RANDOMIZED, "multi_worker"), **changes}
    changes["workdir"] = path
    return [f"--{name}={value}" for name, value in changes.items()]


@pytest.fixture(scope="module")
def trained(nursery, tmp_path_factory):
    """A function that returns the directory of undisturbed runs."""

    @functools.cache
    def train(strategy, encoding):
        path = tmp_path_factory.mktemp("runs") / "of"
        changes = {encoding: of(encoding, strategy.partition(" ")[0])}
        processes = nursery.start_runs(path, changes, **PROCESSES[strategy])
        for process in processes:
            assert process.wait() == 0, process.output
        return path

    return train


@pytest.mark.parametrize(
    ("strategy", "encoding"),
    [
        pytest.param(
            strategy,
            encoding,
            marks=pytest.mark.process
            if encoding in QUICK and strategy in ("mirrored", "multi_worker")
            else pytest.mark.slow,
        )
        for encoding in FAMILIES
        for strategy in list(PROCESSES)[1:]
    ],
)
def test_losses_of_one_device(trained, strategy, encoding):
    losses = train_losses(trained(strategy, encoding) / encoding)
    assert len(losses) == 50
    expected = train_losses(trained("one_device", encoding) / encoding)
    np.testing.assert_allclose(losses, expected, rtol=TOLERANCE)


@pytest.mark.process
def test_as_many_replicas_draw_the_same_positions(trained):
    one, two, workers = (
        train_losses(trained(strategy, RANDOMIZED) / RANDOMIZED)
        for strategy in ("one_device", "mirrored", "multi_worker")
    )
    np.testing.assert_allclose(workers, two, rtol=TOLERANCE)
    assert np.abs(np.divide(workers, one) - 1).max() > 1000 * TOLERANCE


@pytest.mark.process
@pytest.mark.parametrize("encoding", ["RoPE", RANDOMIZED])
def test_all_workers_end_with_the_same_weights(trained, encoding):
    path = trained("multi_worker", encoding)
    with (
        np.load(path / f"{encoding}-0.npz") as first,
        np.load(path / f"{encoding}-1.npz") as second,
    ):
        assert first.files == second.files
        for name in first.files:
            np.testing.assert_array_equal(first[name], second[name])


@pytest.mark.process
def test_a_killed_worker_comes_back(trained, nursery, tmp_path):
    path, metrics = tmp_path / "run", tmp_path / "run" / "metrics.csv"
    workers = nursery.start_workers([flags(path)] * 2, tmp_path)
    for index, step in ((1, 15), (0, 35)):
        workers[index].wait_for(
            lambda step=step: (
                metrics.exists() and f"\n{step}," in metrics.read_text()
            )
        )
        workers[index].kill()
        workers[index] = workers[index].again()
    for worker in workers:
        assert worker.wait() == 0, worker.output
        assert "another worker was lost: resuming from" in worker.output
    undisturbed = trained("multi_worker", RANDOMIZED) / RANDOMIZED
    assert_same_weights(path, undisturbed)
    assert train_losses(path) == train_losses(undisturbed)


@pytest.mark.process
def test_workers_that_are_lost_after_the_last_evaluation(
    trained, nursery, tmp_path
):
    undisturbed = trained("multi_worker", RANDOMIZED) / RANDOMIZED
    path = tmp_path / "run"
    shutil.copytree(undisturbed, path)
    results = json.loads((path / "results.json").read_text())
    (path / "results.json").unlink()
    # The first worker alone still has the evaluation.
    for worker in nursery.start_workers([flags(path)] * 2, tmp_path):
        assert worker.wait() == 0, worker.output
    again = json.loads((path / "results.json").read_text())
    assert again["final"] == results["final"]


@pytest.mark.process
def test_workers_with_different_flags_are_refused(nursery, tmp_path):
    commands = [flags(tmp_path / "run", seed=seed) for seed in (0, 1)]
    for worker in nursery.start_workers(commands, tmp_path):
        assert worker.wait() == 2, worker.output
        assert worker.output.splitlines()[-1] == (
            "error: the workers were started with different flags: give all "
            "of them the same command."
        )


@pytest.mark.process
@pytest.mark.parametrize("text", ["", "[]", '{"cluster": {}}'])
def test_without_a_list_of_workers(nursery, tmp_path, text):
    worker = nursery.start(
        flags(tmp_path / "run"),
        tmp_path / "log",
        environment={"TF_CONFIG": text},
    )
    assert worker.wait() == 2
    (line,) = worker.output.splitlines()
    assert line.startswith("error: --strategy=multi_worker needs the env")
