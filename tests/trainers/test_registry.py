"""Every registered trainer, in processes of their own."""

import numpy as np
import pytest

from tests.trainers.toy import TOYS, assert_same_weights, train_losses
from trainers import EXPERIMENTS

RUN = {
    "steps": 6,
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


def test_every_trainer_has_a_toy():
    assert TOYS.keys() == EXPERIMENTS.keys()


# Trainers differ only in their data. A first start keeps those of WikiText-103
# beside the files.
@pytest.mark.process
def test_strategies_train_alike(nursery, tmp_path):
    losses = {}
    for strategy, processes in PROCESSES.items():
        path = tmp_path / strategy
        flags = {"trainer": "wikitext103", **RUN, "strategy": strategy}
        for process in nursery.start_runs(path, {"run": flags}, **processes):
            assert process.wait() == 0, process.output
        losses[strategy] = train_losses(path / "run")
    assert len(losses["one_device"]) == RUN["steps"]
    for strategy in ("mirrored", "multi_worker"):
        # Adam scales gradients near 0 up, and the rounding of their sums over
        # replicas with them: up to 3.6e-5 was measured.
        np.testing.assert_allclose(
            losses[strategy], losses["one_device"], rtol=2e-4
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    "trainer", [name for name in EXPERIMENTS if name != "algorithmic"]
)
def test_a_killed_run_goes_on(nursery, trainer, tmp_path):
    def start(name):
        flags = {**TOYS[trainer], **RUN, "workdir": tmp_path / name}
        return nursery.start(
            [f"--{name}={value}" for name, value in flags.items()],
            tmp_path / f"{name}.log",
            module=f"trainers.{trainer}",
        )

    # The first start makes what is kept beside the data.
    undisturbed = start("undisturbed")
    assert undisturbed.wait() == 0, undisturbed.output
    process, metrics = start("killed"), tmp_path / "killed" / "metrics.csv"
    process.wait_for(lambda: metrics.exists() and "\n4," in metrics.read_text())
    process.kill()
    again = process.again()
    assert again.wait() == 0, again.output
    paths = tmp_path / "killed", tmp_path / "undisturbed"
    assert_same_weights(*paths)
    assert train_losses(paths[0]) == train_losses(paths[1])
