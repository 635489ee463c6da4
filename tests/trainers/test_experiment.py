"""An experiment is one file: all that trainers do is done with it."""

import json

import numpy as np
import pytest

import trainers
from tests.trainers.toy import assert_same_weights
from tests.trainers.toy_experiment import EXPERIMENT
from trainers import experiment
from trainers.errors import StoppedError
from trainers.options.fields import resolve
from trainers.tpu.compiler import Topology
from trainers.tpu.options import PRESETS, TpuCompileConfig
from trainers.tpu.requests import list_programs
from trainers.tpu.tensorflow_programs import lower

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


def config(**changes):
    return resolve(EXPERIMENT.config, EXPERIMENT.presets, {**FLAGS, **changes})


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("copy")
    return path, EXPERIMENT.train(config(), path / "whole")


@pytest.mark.product
def test_the_lowest_score_is_the_best(results):
    path, found = results
    assert found["score_metric"] == "nats_per_symbol"
    assert not found["higher_is_better"]
    by_length = found["final"]["nats_per_symbol_by_length"]
    assert set(by_length) == {"4", "6", "8"}
    unseen = [by_length["6"], by_length["8"]]
    assert found["final"]["score"] == pytest.approx(np.mean(unseen))
    assert found["best"]["score"] <= found["final"]["score"]
    saved = json.loads((path / "whole" / "results.json").read_text())
    assert saved == found


@pytest.mark.product
def test_a_stopped_run_goes_on(results, monkeypatch):
    path, found = results
    checks = []

    def stop(self, before_stopping=lambda: None):
        checks.append(self)
        if len(checks) == 2:
            before_stopping()
            raise StoppedError(15)

    with monkeypatch.context() as patch:
        patch.setattr(experiment.StopRequest, "check", stop)
        with pytest.raises(StoppedError):
            EXPERIMENT.train(config(), path / "parts")
    again = EXPERIMENT.train(config(), path / "parts")
    assert again["final"] == found["final"]
    assert_same_weights(path / "whole", path / "parts")


@pytest.mark.product
def test_variants_share_a_plot(tmp_path, monkeypatch):
    variants = {name: {"encoding": name} for name in ("NoPE", "ALiBi")}
    monkeypatch.setattr(experiment, "DEMONSTRATION", variants)
    changes = {"encoding": "", "steps": 3, "workdir": str(tmp_path)}
    EXPERIMENT.main(config(**changes))
    for name in ("NoPE", "ALiBi"):
        assert (tmp_path / name / "results.json").exists()
    assert (tmp_path / "length_generalization.png").exists()


@pytest.mark.product
def test_its_steps_are_compiled_for_tpus(monkeypatch):
    monkeypatch.setitem(
        trainers.EXPERIMENTS, "copy", "tests.trainers.toy_experiment"
    )
    flags = {"trainer": "copy", "batch_size": 8, "train_length": "4"}
    told = resolve(TpuCompileConfig, PRESETS, flags)
    made = {program.mode: program for program in list_programs(told)}
    assert set(made) == {"train", "evaluate"}
    for program in made.values():
        text, examples, trained = lower(
            program.experiment,
            program.config,
            program.mode,
            100,
            Topology(program.topology),
        )
        assert examples == {"train": 2, "evaluate": 50}[program.mode]
        assert trained > 0
        sums = text.count('"stablehlo.all_reduce"(')
        assert bool(sums) == (program.mode == "train")
        assert program.key["symbols"] == 3
