"""Every registered trainer, in the same tests."""

import signal

import numpy as np
import pytest

from tests.products import mark_slow
from tests.trainers.engine.test_jax_step import go_back, on_jax
from tests.trainers.toy import (
    TOYS,
    assert_same_weights,
    run_toy,
    train_losses,
)
from trainers import EXPERIMENTS, experiment
from trainers.errors import StoppedError

# The algorithmic trainer has tests of its own for each of these.
TRAINERS = [name for name in EXPERIMENTS if name != "algorithmic"]
RUN = {
    "steps": 12,
    "steps_per_loop": 1,
    "checkpoint_every": 3,
    "evaluate_every": 6,
    "dropout": 0.0,
}
PROCESSES = {
    "one_device": {"devices": 1},
    "mirrored": {"devices": 2},
    "multi_worker": {"workers": 2},
}

each_trainer = pytest.mark.parametrize("trainer", TRAINERS)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A function that returns the directory of a trainer's undisturbed run."""
    done = {}

    def train(trainer):
        if trainer not in done:
            done[trainer] = tmp_path_factory.mktemp(trainer) / "whole"
            run_toy(done[trainer], trainer=trainer, **RUN)
        return done[trainer]

    return train


def test_every_trainer_has_a_toy():
    assert set(TOYS) == set(EXPERIMENTS)


@pytest.mark.product
@pytest.mark.parametrize(
    "trainer", mark_slow(TRAINERS, ["imagenet", "wikitext103"])
)
def test_a_stopped_run_goes_on(whole, trainer, tmp_path, monkeypatch):
    checks = []

    def stop(self, before_stopping=lambda: None):
        checks.append(self)
        if len(checks) == 8:
            before_stopping()
            raise StoppedError(signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(experiment.StopRequest, "check", stop)
        with pytest.raises(StoppedError):
            run_toy(tmp_path, trainer=trainer, **RUN)
    run_toy(tmp_path, trainer=trainer, **RUN)
    assert_same_weights(tmp_path, whole(trainer))
    assert train_losses(tmp_path) == train_losses(whole(trainer))


@pytest.mark.slow
@each_trainer
def test_a_killed_run_goes_on(nursery, whole, trainer, tmp_path):
    # Also makes what a first start keeps beside the data.
    whole(trainer)

    def start(name):
        flags = {**TOYS[trainer], **RUN, "workdir": tmp_path / name}
        return nursery.start(
            [f"--{name}={value}" for name, value in flags.items()],
            tmp_path / f"{name}.log",
            module=f"trainers.{trainer}",
        )

    process, metrics = start("killed"), tmp_path / "killed" / "metrics.csv"
    process.wait_for(lambda: metrics.exists() and "\n5," in metrics.read_text())
    process.kill()
    for started in (process.again(), start("undisturbed")):
        assert started.wait() == 0, started.output
    killed, undisturbed = (tmp_path / n for n in ("killed", "undisturbed"))
    assert_same_weights(killed, undisturbed)
    assert train_losses(killed) == train_losses(undisturbed)


# Trainers differ only in their data. A first start keeps those of WikiText-103
# beside the files.
@pytest.mark.parametrize(
    "trainer",
    [
        pytest.param(
            name,
            marks=pytest.mark.process
            if name == "wikitext103"
            else pytest.mark.slow,
        )
        for name in TRAINERS
    ],
)
def test_strategies_train_alike(nursery, trainer, tmp_path):
    losses = {}
    for strategy, processes in PROCESSES.items():
        path = tmp_path / strategy
        changes = {"run": {"trainer": trainer, **RUN, "strategy": strategy}}
        for process in nursery.start_runs(path, changes, **processes):
            assert process.wait() == 0, process.output
        losses[strategy] = train_losses(path / "run")
    assert len(losses["one_device"]) == RUN["steps"]
    for strategy in ("mirrored", "multi_worker"):
        # Adam scales gradients near 0 up, and the rounding of their sums over
        # replicas with them: up to 3.6e-5 was measured.
        np.testing.assert_allclose(
            losses[strategy], losses["one_device"], rtol=2e-4
        )


@pytest.fixture(scope="module")
def gone_on(whole, tmp_path_factory):
    """Directory of all trainers' runs that JAX has finished, in one process."""
    path = tmp_path_factory.mktemp("on_jax")
    for trainer in TRAINERS:
        go_back(whole(trainer), path / trainer, 6)
    on_jax(*((path / name, {"trainer": name, **RUN}) for name in TRAINERS))
    return path


@pytest.mark.slow
@each_trainer
def test_jax_sees_the_same_data(whole, gone_on, trainer):
    found, expected = (
        train_losses(path) for path in (gone_on / trainer, whole(trainer))
    )
    assert len(found) == RUN["steps"]
    np.testing.assert_allclose(found, expected, rtol=1e-4)
