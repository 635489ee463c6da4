"""A run measured again."""

import json

import pytest

from tests.trainers.toy import run_toy
from trainers import evaluate
from trainers.errors import ConfigError
from trainers.evaluate import EvaluateConfig
from trainers.options.fields import resolve
from trainers.records.opened_run import open_run

CHANGES = {"encoding": "RandomizedRoPE", "checkpoint_every": 1}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("run")
    return path, run_toy(path, **CHANGES, steps_per_loop=1)


def evaluate_again(text, **flags):
    evaluate.main(resolve(EvaluateConfig, {}, flags), str(text))


def read_only_file(path):
    (found,) = path.glob("evaluations/*.json")
    found.rename(path / found.name)
    return found.name, json.loads((path / found.name).read_text())


def test_the_same_evaluation_gives_the_same_numbers(finished, capsys):
    path, results = finished
    evaluate_again(path)
    name, again = read_only_file(path)
    assert name == "checkpoint-2.json"
    assert again["final"] == results["final"]
    for key in ("trainer", "digest", "config", "floor_by_length"):
        assert again[key] == results[key]
    output = capsys.readouterr().out
    assert "| length | results.json | this evaluation |" in output
    score = f"{results['final']['score']:.4g}"
    assert f"| score | {score} | {score} |" in output
    assert "its own column" not in output
    assert (path / "evaluations" / "checkpoint-2.png").exists()


def test_other_lengths_and_positions(finished, capsys):
    path, results = finished
    flags = {"test_lengths": "5,9", "evaluation": "even"}
    evaluate_again(path / "checkpoints" / "checkpoint-1.npz", **flags)
    scored = "A score is the mean over the lengths above 3 of its own column."
    assert scored in capsys.readouterr().out
    name, again = read_only_file(path)
    assert name == "checkpoint-1-test_lengths=5,9-evaluation=even.json"
    assert again["final"]["step"] == 1
    assert set(again["final"]["loss_by_length"]) == {*"12359"}
    assert again["config"]["encoding"] == "RandomizedRoPE(evaluation='even')"
    losses = {
        found["final"]["loss_by_length"]["5"] for found in (again, results)
    }
    assert len(losses) == 2


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"test_lengths": "5,30"}, "max_position=32"),
        ({"evaluation": "zero"}, "evaluation"),
        ({"evaluation_examples": -1}, "at least 0"),
        ({"checkpoint": "last"}, "must be one of newest, best"),
    ],
)
def test_mistakes(finished, flags, message):
    with pytest.raises(ConfigError, match=message):
        evaluate_again(finished[0], **flags)


def test_a_run_is_needed(finished, tmp_path):
    path, _ = finished
    for text, message in (
        (tmp_path, "is not the working directory of a run"),
        ("x.npz", "x.npz is not the working directory of a run"),
        ("~nobody/x", "~nobody/x is not the working directory of a run"),
        (path / "checkpoints" / "checkpoint-7.npz", "there is no checkpoint"),
    ):
        with pytest.raises(ConfigError, match=message):
            open_run(str(text))
    (tmp_path / "config.json").write_text((path / "config.json").read_text())
    with pytest.raises(
        ConfigError, match=r"has no checkpoint best-\*\.npz yet"
    ):
        open_run(str(tmp_path), "best")
    record = json.loads((path / "config.json").read_text())
    for changes, message in (
        ({"trainer": "algorithm"}, "Did you mean algorithmic"),
        ({"config": {"bells": 3}}, "flags that this version does not know"),
    ):
        text = json.dumps({**record, **changes})
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(ConfigError, match=message):
            open_run(str(tmp_path))
