"""Runs that tools look at: their configuration and their data are theirs."""

import json
import shutil

import pytest

from tests.trainers.toy import TOYS, toy_config
from trainers import analyze, evaluate, finetune
from trainers.engine.backend import make_strategy
from trainers.enwik8 import EXPERIMENT
from trainers.errors import ConfigError, OtherDataError
from trainers.options.fields import resolve
from trainers.records.checkpoints import Checkpoints, GoneError
from trainers.records.opened_run import open_run
from trainers.records.workdir import Workdir

TEXT = bytes(range(256)) * 8


def make_config(text):
    flags = {**TOYS["enwik8"], "data_dir": str(text)}
    return resolve(EXPERIMENT.config, EXPERIMENT.presets, flags)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The directory of a run and of its text."""
    path = tmp_path_factory.mktemp("trained")
    (path / "text").write_bytes(TEXT)
    config = make_config(path / "text")
    strategy = make_strategy("one_device")
    model, optimizer, problem = EXPERIMENT.make_parts(config, strategy)
    problem.prepare()
    digest = problem.data_digest
    run = path / "run"
    with Workdir(run, config, "enwik8", data_digest=digest) as workdir:
        parts = {"model": model, "optimizer": optimizer, "strategy": strategy}
        parts.update(digest=workdir.digest, steps=config.steps)
        with Checkpoints(run, **parts) as checkpoints:
            checkpoints.save(2, 0.0)
    return path


@pytest.fixture
def copied(trained, tmp_path):
    """A copy of the run, and the path of the text that it began with."""
    shutil.copytree(trained / "run", tmp_path / "run")
    text = trained / "text"
    yield tmp_path / "run", text
    text.write_bytes(TEXT)


def change(path, **changes):
    """Changes entries of `config.json`."""
    record = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**record, **changes}))


def prepare(path, **flags):
    opened = open_run(str(path), **flags)
    opened.prepare(opened.experiment.make_problem(opened.config))


def test_data_that_have_changed_are_refused(copied):
    path, text = copied
    prepare(path)
    # One byte in the middle.
    text.write_bytes(TEXT[:999] + b"?" + TEXT[1000:])
    with pytest.raises(OtherDataError) as caught:
        prepare(path)
    assert str(caught.value) == (
        f"{path} began with other data than --data_dir={text} --dataset=files "
        "has now: restore them, name their place by --data_dir, or train "
        "another run."
    )


def test_data_may_move(copied, tmp_path):
    path, text = copied
    moved = tmp_path / "moved"
    moved.write_bytes(TEXT)
    text.unlink()
    with pytest.raises(ConfigError, match="neither a file nor a folder"):
        prepare(path)
    prepare(path, data_dir=str(moved))
    moved.write_bytes(TEXT[1:])
    with pytest.raises(OtherDataError, match=f"--data_dir={moved} "):
        prepare(path, data_dir=str(moved))


def test_a_configuration_that_was_changed_by_hand_is_refused(copied):
    path, _ = copied
    config = json.loads((path / "config.json").read_text())["config"]
    for name, value in (("encoding", "ALiBi"), ("num_heads", 4)):
        change(path, config={**config, name: value})
        with pytest.raises(ConfigError) as caught:
            open_run(str(path))
        assert str(caught.value) == (
            f"{path}/config.json was changed after the run began: restore it, "
            "or begin another run."
        )
    # What no result depends on.
    change(path, config={**config, "steps_per_loop": 7, "steps": 5})
    assert open_run(str(path)).config.steps_per_loop == 7


def test_every_tool_that_needs_the_data_refuses_other_ones(copied, tmp_path):
    path, text = copied
    text.write_bytes(TEXT[::-1])
    tuned = finetune.make_config_class(open_run(str(path)).config)
    flags = {"steps": 1, "workdir": str(tmp_path / "tuned")}
    for module, config in (
        (evaluate, evaluate.EvaluateConfig()),
        (analyze, analyze.AnalyzeConfig()),
        (finetune, resolve(tuned, {}, flags)),
    ):
        with pytest.raises(OtherDataError, match="began with other data than"):
            module.main(config, str(path))
    assert not (tmp_path / "tuned").exists()
    assert [file.name for file in path.iterdir()] == [
        file.name for file in (text.parent / "run").iterdir()
    ]


def test_what_cannot_be_opened(copied, tmp_path):
    path, _ = copied
    other = tmp_path / "other"
    with Workdir(other, toy_config(), "algorithmic"):
        pass
    checkpoint = path / "checkpoints" / "checkpoint-2.npz"
    gone = checkpoint.with_stem("checkpoint-1")
    for error, message, arguments in (
        (ConfigError, "is not a flag of trainers", (other, "newest", "x")),
        (ConfigError, r"has no checkpoint checkpoint-\*", (other,)),
        (ConfigError, r"has no checkpoint best-\*", (path, "best")),
        (ConfigError, "leave --checkpoint=best out", (checkpoint, "best")),
        (ConfigError, "is not the working directory of", (tmp_path,)),
        (GoneError, "there is no checkpoint", (gone,)),
    ):
        with pytest.raises(error, match=message):
            open_run(*map(str, arguments))
    assert open_run(str(checkpoint)).checkpoint == checkpoint
    assert open_run(str(path)).checkpoint == checkpoint


def test_a_checkpoint_that_training_replaces_is_looked_for_again(copied):
    path, _ = copied
    opened = open_run(str(path))
    newer = opened.checkpoint.with_stem("checkpoint-3")
    opened.checkpoint.rename(newer)

    def use(run):
        if run.checkpoint != newer:
            raise GoneError("gone")
        return run.checkpoint

    assert opened.retry(use) == newer
    newer.unlink()
    with pytest.raises(ConfigError, match="has no checkpoint"):
        opened.retry(use)
