"""Every registered trainer, in processes of their own."""

import pytest

from tests.trainers.toy import TOYS, assert_same_weights, train_losses
from tests.trainers.workers import Started
from trainers import EXPERIMENTS

RUN = {
    "steps": 6,
    "steps_per_loop": 1,
    "checkpoint_every": 3,
    "evaluate_every": 6,
    "dropout": 0.0,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "trainer", [name for name in EXPERIMENTS if name != "algorithmic"]
)
def test_a_killed_run_goes_on(trainer, tmp_path):
    def start(name):
        flags = {**TOYS[trainer], **RUN, "workdir": tmp_path / name}
        return Started(
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
