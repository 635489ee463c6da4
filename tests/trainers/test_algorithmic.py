"""The trainer of algorithmic tasks, and what whole runs leave behind."""

import json

import numpy as np
import pytest
import tensorflow as tf

from datasets.tasks.batches import assemble
from tests.trainers import toy
from trainers.algorithmic import EXPERIMENT
from trainers.errors import ConfigError
from trainers.options.fields import resolve
from trainers.options.layers import with_max_position

RUN = {**toy.EACH_STEP, "evaluate_every": 1}
"""Flags of the run that `finished` makes."""


def test_what_cannot_be_is_refused(tmp_path):
    for changes, message in (
        ({"encoding": "XPos"}, "XPos is for causal attention"),
        ({"attention": "GeometricAttention"}, "no use for encoding=RoPE"),
        ({"encoding": "RandomizedALiBi(max_position=10)"}, "12 tokens, but"),
    ):
        with pytest.raises(ConfigError, match=message):
            toy.run_toy(tmp_path / "run", **changes)
    assert not (tmp_path / "run").exists()


def compute(**changes):
    """Outputs for a batch, lengths of steps, and an evaluation's outputs."""
    flags = {"encoding": "RandomizedRoPE", "num_layers": 2, **changes}
    model, _, problem = toy.build_toy(**flags)
    sample = problem.task.sample((0, 1), 2, 3)
    inputs = problem.inputs(assemble(problem.task, sample, 8))
    lengths = [int(problem.tokens_at(tf.constant(n))) for n in range(9)]
    outputs = (model(inputs, training=False), model(inputs, training=False))
    return [np.asarray(values).tolist() for values in (*outputs, lengths)]


SETTINGS = (
    {"share_positions": "layer"},
    {"max_position": 64},
    {"encoding": "RandomizedRoPE(evaluation='even')"},
    {"curriculum": "RegularIncrease(every=1)"},
    {"seed": 1},
)


@pytest.mark.product
def test_flags_reach_the_model_and_the_data():
    found = [compute(**changes) for changes in ({}, *SETTINGS)]
    assert compute() == found[0]
    for number, one in enumerate(found):
        assert one not in found[:number]


def test_a_run_leaves_what_it_promises(finished):
    path, results = finished()
    assert {found.name for found in path.iterdir()} - {"evaluations"} == {
        "checkpoints",
        "config.json",
        "length_generalization.png",
        "metrics.csv",
        "results.json",
        "tensorboard",
    }
    assert json.loads((path / "results.json").read_text()) == results
    final = results["final"]
    assert [*final["loss_by_length"]] == ["1", "2", "3", "5", "6"]
    assert results["floor_by_length"].keys() == final["loss_by_length"].keys()
    accuracies = final["accuracy_by_length"]
    score = (accuracies["5"] + accuracies["6"]) / 2
    assert final["score"] == pytest.approx(score)
    assert results["best"]["score"] >= final["score"]
    assert final["step"] == results["train"]["steps"] == 2


def test_a_finished_run_is_not_repeated(finished, capsys):
    path, results = finished()
    before = (path / "metrics.csv").read_text()
    assert toy.run_toy(path, **RUN) == results
    assert "already finished" in capsys.readouterr().out
    assert (path / "metrics.csv").read_text() == before


@pytest.mark.product
def test_equal_seeds_give_equal_runs(finished, tmp_path, capsys):
    path, results = finished()
    again = toy.run_toy(tmp_path / "again", **RUN)
    capsys.readouterr()
    other = toy.run_toy(tmp_path / "other", **RUN, seed=1)
    changed, rest, *_ = capsys.readouterr().out.splitlines()
    assert changed.startswith("reverse_string, RandomizedRoPE: --")
    assert "--seed=1" in changed.split() and "--clip_norm" not in changed
    assert rest.endswith(f"{tmp_path}/other/config.json")
    assert again["final"] == results["final"] != other["final"]
    losses = [toy.train_losses(tmp_path / name) for name in ("again", "other")]
    assert losses[0] == toy.train_losses(path) != losses[1]


@pytest.mark.product
def test_the_demonstration_trains_both_variants(tmp_path):
    changes = {**toy.TOY, "encoding": "", "steps": 1, "workdir": str(tmp_path)}
    EXPERIMENT.main(resolve(EXPERIMENT.config, EXPERIMENT.presets, changes))
    assert (tmp_path / "length_generalization.png").stat().st_size > 10_000
    for variant in ("RoPE", "RandomizedRoPE"):
        assert (tmp_path / variant / "results.json").exists()


def test_positions_reach_beyond_the_longest_sequence_by_default():
    config = toy.toy_config(encoding="RandomizedALiBi", max_position=0)
    # 2 * 6 tokens and a quarter more.
    assert with_max_position(config).max_position == 16
