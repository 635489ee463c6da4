"""An experiment is one file: all that trainers do is done with it."""

import numpy as np
import pytest

from tests.trainers.toy import assert_same_weights
from tests.trainers.toy_experiment import EXPERIMENT
from trainers import experiment
from trainers.errors import StoppedError
from trainers.options.fields import resolve


FLAGS = {
    "encoding": "RandomizedRoPE",
    "steps": 12,
    "steps_per_loop": 3,
    "checkpoint_every": 3,
    "evaluate_every": 6,
    "num_layers": 1,
    "num_heads": 2,
    "model_dim": 8,
    "batch_size": 8,
    "train_length": "4",
    "test_lengths": "6,8",
    "evaluation_examples": 5,
    "strategy": "one_device",
}


@pytest.mark.product
def test_a_stopped_run_goes_on(tmp_path, monkeypatch):
    config = resolve(EXPERIMENT.config, EXPERIMENT.presets, FLAGS)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    found = EXPERIMENT.train(config, whole)
    # The lowest score is the best.
    assert found["score_metric"] == "nats_per_symbol"
    assert not found["higher_is_better"]
    by_length = found["final"]["nats_per_symbol_by_length"]
    unseen = [by_length["6"], by_length["8"]]
    assert found["final"]["score"] == pytest.approx(np.mean(unseen))
    assert found["best"]["score"] <= found["final"]["score"]

    checks = []

    def stop(self, before_stopping=lambda: None):
        checks.append(self)
        if len(checks) == 2:
            before_stopping()
            raise StoppedError(15)

    with monkeypatch.context() as patch:
        patch.setattr(experiment.StopRequest, "check", stop)
        with pytest.raises(StoppedError):
            EXPERIMENT.train(config, parts)
    assert EXPERIMENT.train(config, parts)["final"] == found["final"]
    assert_same_weights(whole, parts)
