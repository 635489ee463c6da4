import pytest

from tests.trainers.toy import run_toy
from trainers.errors import TrainingError


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path):
    with pytest.raises(TrainingError, match=r"the loss of step \d+ is"):
        run_toy(tmp_path, {"learning_rate": 1e30}, steps=20, clip_norm=1e30)
