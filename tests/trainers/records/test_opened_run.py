"""Runs that tools look at: their configuration and their data are theirs."""

import json

import pytest

from tests.trainers.toy import change, make_parts, toy_config
from trainers import analyze, evaluate, finetune, generate
from trainers.enwik8 import EXPERIMENT
from trainers.errors import ConfigError, OtherDataError
from trainers.options.fields import resolve
from trainers.records.checkpoints import GoneError
from trainers.records.opened_run import are_of_other_data, open_run
from trainers.records.workdir import Workdir

TEXT = bytes(range(256)) * 8
OTHER = TEXT[:999] + b"?" + TEXT[1000:]


@pytest.fixture
def begun(tmp_path):
    """The directory of a run, and the path of the text that it began with."""
    path, text = tmp_path / "run", tmp_path / "text"
    text.write_bytes(TEXT)
    config = toy_config("enwik8", data_dir=str(text))
    _, checkpoints = make_parts(path, config, "enwik8")
    with checkpoints:
        checkpoints.save(2, 0.0)
    return path, text


def prepare(path, **flags):
    opened = open_run(str(path), **flags)
    opened.prepare(opened.experiment.make_problem(opened.config))


def test_data_may_move_and_must_not_change(begun, tmp_path):
    path, text = begun
    moved = tmp_path / "moved"
    moved.write_bytes(TEXT)
    prepare(path)
    prepare(path, data_dir=str(moved))
    for file, flags in ((text, {}), (moved, {"data_dir": str(moved)})):
        file.write_bytes(OTHER)
        message = f"began with other data than --data_dir={file} "
        with pytest.raises(OtherDataError, match=message):
            prepare(path, **flags)
    # Data that other flags name are meant to be other ones.
    problem = EXPERIMENT.make_problem(
        open_run(str(path), data_dir=str(moved)).config
    )
    problem.prepare()
    open_run(str(path)).check_data(problem, "restore them")
    text.unlink()
    with pytest.raises(ConfigError, match="neither a file nor a folder"):
        prepare(path)


@pytest.mark.product
def test_a_model_generates_without_its_text(begun, capsys):
    path, text = begun
    text.unlink()
    config = generate.GenerateConfig(prompt="ab", max_new_tokens=2)
    generate.main(config, str(path))
    assert capsys.readouterr().out.startswith("ab")


def test_digests_of_earlier_versions_lock_nobody_out(begun, capsys):
    path, text = begun
    change(path / "config.json", data_digest="ee6a453943236d58")
    text.write_bytes(OTHER)
    prepare(path)
    assert f"an earlier version began {path} and" in capsys.readouterr().out


def test_a_configuration_that_was_changed_by_hand_is_refused(begun):
    path, _ = begun
    file = path / "config.json"
    config = json.loads(file.read_text())["config"]
    change(file, config={**config, "num_heads": 4})
    with pytest.raises(ConfigError, match="was changed after the run began"):
        open_run(str(path))
    # What no result depends on.
    change(file, config={**config, "steps_per_loop": 7, "steps": 5})
    assert open_run(str(path)).config.steps_per_loop == 7


def test_every_tool_that_needs_the_data_refuses_other_ones(begun, tmp_path):
    path, text = begun
    text.write_bytes(OTHER)
    tuned = finetune.make_config_class(open_run(str(path)).config)
    flags = {"workdir": str(tmp_path / "tuned")}
    for module, config in (
        (evaluate, evaluate.EvaluateConfig()),
        (analyze, analyze.AnalyzeConfig()),
        (finetune, resolve(tuned, {}, flags)),
    ):
        with pytest.raises(OtherDataError, match="began with other data than"):
            module.main(config, str(path))
    assert not (tmp_path / "tuned").exists()


def test_what_cannot_be_opened(begun, tmp_path):
    path, _ = begun
    other = tmp_path / "other"
    with Workdir(other, toy_config(), "algorithmic"):
        pass
    checkpoint = path / "checkpoints" / "checkpoint-2.npz"
    gone = checkpoint.with_stem("checkpoint-1")
    for error, message, arguments in (
        (ConfigError, "is not a flag of trainers", (other, "newest", "x")),
        (ConfigError, r"has no checkpoint checkpoint-\*", (other,)),
        (ConfigError, r"has no checkpoint best-\*", (path, "best")),
        (ConfigError, "remove --checkpoint=best", (checkpoint, "best")),
        (ConfigError, "is not the working directory of", (tmp_path,)),
        (GoneError, "there is no checkpoint", (gone,)),
    ):
        with pytest.raises(error, match=message):
            open_run(*map(str, arguments))
    for given in (checkpoint, path):
        assert open_run(str(given)).checkpoint == checkpoint
    for changes, message in (
        ({"config": {"steps": "two"}}, "--steps must be of type int; got 'two"),
        ({"trainer": "enwik"}, "the trainer of .* Did you mean enwik8"),
    ):
        change(path / "config.json", **changes)
        with pytest.raises(ConfigError, match=message):
            open_run(str(path))


def test_data_of_other_names_are_meant_to_differ():
    first, other = (
        {"trainer": "enwik8", "config": {"dataset": name}, "data_digest": name}
        for name in "ab"
    )
    assert not are_of_other_data(first, other)
