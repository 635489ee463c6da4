import json
import shutil

import numpy as np
import pytest

from tests.trainers.toy import build_toy, change
from trainers import evaluate
from trainers.errors import ConfigError
from trainers.evaluate import EvaluateConfig
from trainers.options.fields import resolve
from trainers.records.opened_run import open_run


@pytest.fixture
def copied(finished, tmp_path):
    """The directory of a copy of a run, and the run's results."""
    path, results = finished()
    shutil.copytree(path, tmp_path / "run")
    return tmp_path / "run", results


def evaluate_again(text, **flags):
    evaluate.main(resolve(EvaluateConfig, {}, flags), str(text))


def read_only_file(path):
    (found,) = path.glob("evaluations/*.json")
    return found.name, json.loads(found.read_text())


def test_the_same_evaluation_gives_the_same_numbers(copied, capsys):
    path, results = copied
    evaluate_again(path)
    name, again = read_only_file(path)
    assert name == "checkpoint-2.json"
    assert again["final"] == results["final"]
    for key in ("trainer", "digest", "config", "floor_by_length"):
        assert again[key] == results[key]
    output = capsys.readouterr().out
    score = f"{results['final']['score']:.4g}"
    assert f"| score | {score} | {score} |" in output
    assert "this evaluation is not above the floor, 0.66 at length 6" in output
    assert (path / "evaluations" / "checkpoint-2.png").exists()


@pytest.mark.product
def test_other_lengths_and_positions(copied):
    path, results = copied
    flags = {"test_lengths": "5,9", "evaluation": "even"}
    evaluate_again(path / "checkpoints" / "checkpoint-1.npz", **flags)
    name, again = read_only_file(path)
    assert name == "checkpoint-1-test_lengths=5,9-evaluation=even.json"
    assert again["final"]["step"] == 1
    losses = again["final"]["loss_by_length"]
    assert {*losses} == {*"12359"}
    assert again["config"]["encoding"] == "RandomizedRoPE(evaluation='even')"
    assert losses["5"] != results["final"]["loss_by_length"]["5"]


def test_mistakes(finished):
    for flags, message in (
        ({"test_lengths": "5,30"}, "max_position=32, which the run has fixed"),
        ({"tpu": "x"}, "--tpu has no effect without"),
        ({"test_sizes": "3x3"}, "not a flag of trainers.algorithmic"),
    ):
        with pytest.raises(ConfigError, match=message):
            evaluate_again(finished()[0], **flags)


def test_damaged_results_are_named_before_work(copied):
    path, _ = copied
    final = {"score": "0.5", "accuracy_by_length": {"5": 0.5}}
    change(path / "results.json", final=final)
    with pytest.raises(ConfigError, match=r"results\.json has no score, or no"):
        evaluate_again(path)
    assert not (path / "evaluations").exists()


def rotate(path, step):
    """Lets another checkpoint take the place of all that are there."""
    paths = list(path.glob("checkpoints/checkpoint-*.npz"))
    with np.load(paths[0]) as found:
        arrays = {**found, "step": np.int64(step)}
    for old in paths:
        old.unlink()
    np.savez(paths[0].with_stem(f"checkpoint-{step}"), **arrays)


def test_a_checkpoint_that_training_has_removed(copied):
    path, _ = copied
    opened = open_run(str(path))
    model, _, _ = build_toy(encoding="RandomizedRoPE")
    rotate(path, 7)
    again, step = opened.load(model)
    assert (again.checkpoint.stem, step) == ("checkpoint-7", 7)
    # One that was named is not replaced.
    named = open_run(str(again.checkpoint))
    rotate(path, 8)
    with pytest.raises(ConfigError, match=r"no checkpoint .*checkpoint-7\.npz"):
        named.load(model)
    shutil.rmtree(path / "checkpoints")
    with pytest.raises(ConfigError, match="has no checkpoint"):
        again.load(model)
