"""The working directory of a run: which runs it takes, and its JSON files."""

import errno
import json
import os

import pytest

from tests.trainers.toy import toy_config
from trainers.algorithmic import TaskProblem
from trainers.engine.backend import make_strategy
from trainers.errors import ConfigError, OtherDataError, TrainingError
from trainers.records.metrics import Metrics
from trainers.records.results import versions
from trainers.records.workdir import (
    Workdir,
    make_digest,
    naming_damage,
)


def open_workdir(path, trainer="algorithmic", data_digest="", **changes):
    extensible = changes.pop("extensible", True)
    options = {"data_digest": data_digest, "extensible": extensible}
    return Workdir(path, toy_config(**changes), trainer, **options)


def begin(path, **changes):
    """Begins a run, or resumes it; returns its digest."""
    with open_workdir(path, **changes) as workdir:
        return workdir.digest


def change_record(path, remove=(), **changes):
    """Changes `config.json`, whose digest is then that of its content."""
    record = json.loads((path / "config.json").read_text())
    config = {**record["config"], **changes}
    config = {n: value for n, value in config.items() if n not in remove}
    fixed = set(open_workdir(path)._fixed)
    record["config"] = config
    record["digest"] = make_digest(
        record["trainer"], {n: v for n, v in config.items() if n in fixed}
    )
    (path / "config.json").write_text(json.dumps(record))
    return record["digest"]


def test_results_tell_the_best_from_the_final(tmp_path):
    with open_workdir(tmp_path, steps=4) as workdir:
        problem = TaskProblem(toy_config())
        log = Metrics(tmp_path, problem)
        log.on_train_begin({"step": 0})
        for step, value in ((2, 0.9), (4, 0.4)):
            log.add_evaluation(step, 1.0, {"accuracy": {4: value}})
        strategy = make_strategy("one_device")
        results = workdir.make_results(log, problem, strategy, seconds=8.0)
        assert workdir.results is None
        workdir.write_json("results.json", results)
        assert workdir.results == results
        assert results["digest"] == workdir.digest
    assert (results["best"]["step"], results["final"]["step"]) == (2, 4)
    assert results["train"] == {
        "steps": 4,
        "seconds": 8.0,
        "steps_per_second": 0.5,
    }
    assert results["score_metric"] == "accuracy" and results["higher_is_better"]
    assert {"python", "tensorflow", "keras", "numpy"} <= versions().keys()
    # A run of more steps is not finished.
    with open_workdir(tmp_path, steps=6) as workdir:
        assert workdir.results is None


def test_files_are_replaced_as_a_whole(tmp_path, monkeypatch):
    def fail(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with open_workdir(tmp_path) as workdir:
        workdir.write_json("results.json", {"a": 1})
        monkeypatch.setattr("os.replace", fail)
        with pytest.raises(TrainingError, match=r"results.json: No space left"):
            workdir.write_json("results.json", {"a": 2})
    assert json.loads((tmp_path / "results.json").read_text()) == {"a": 1}
    assert not list(tmp_path.glob("*.partial"))


def test_where_and_on_what_a_run_goes_on_may_change(tmp_path):
    first = begin(tmp_path)
    changes = {"strategy": "mirrored", "steps_per_loop": 7, "steps": 6}
    assert begin(tmp_path, **changes) == first


def test_a_flag_newer_than_the_run_has_its_default(tmp_path):
    digest = begin(tmp_path)
    # As if the run had begun before this flag was there.
    older = change_record(tmp_path, remove=["clip_norm"])
    assert begin(tmp_path) == begin(tmp_path) == older != digest
    with pytest.raises(ConfigError, match=r"--clip_norm was 1\.0, is 2\.0"):
        begin(tmp_path, clip_norm=2.0)


OTHER_RUNS = {
    "a flag": ({"seed": 1}, r"another config.* \(--seed was 0, is 1\): choose"),
    "fewer steps": (
        {"steps": 1},
        "--steps was 2, is 1: it can only be raised",
    ),
    "a schedule": (
        {"steps": 8, "extensible": False},
        "--steps was 2, is 8: the schedule of the learning rate depends on it",
    ),
    "a trainer": ({"trainer": "other"}, r"\(the trainer was algorithmic, is o"),
    "data": (
        {"data_digest": "sha256:cd34"},
        "contains a run on other data: restore them, or choose another --work",
    ),
}


@pytest.mark.parametrize("name", OTHER_RUNS)
def test_another_run_is_refused(tmp_path, name):
    changes, message = OTHER_RUNS[name]
    begin(tmp_path, data_digest="sha256:ab12")
    before = (tmp_path / "config.json").read_bytes()
    flags = {"data_digest": "sha256:ab12", **changes}
    error = OtherDataError if name == "data" else ConfigError
    with pytest.raises(error, match=message):
        begin(tmp_path, **flags)
    assert (tmp_path / "config.json").read_bytes() == before


def test_a_flag_of_another_version_is_refused(tmp_path):
    begin(tmp_path)
    change_record(tmp_path, gone=3)
    with pytest.raises(ConfigError, match="--gone was 3, is no flag of this"):
        begin(tmp_path)


def test_a_configuration_changed_by_hand_is_refused(tmp_path):
    begin(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 5'))
    with pytest.raises(ConfigError, match="changed after the run began"):
        begin(tmp_path, seed=5)


@pytest.mark.parametrize("name", ["results.json", "metrics.csv", "checkpoints"])
def test_files_of_a_run_without_its_configuration(tmp_path, name):
    if name == "checkpoints":
        (tmp_path / name).mkdir()
        name = "checkpoints/checkpoint-2.npz"
    (tmp_path / name).touch()
    message = f"{name} belongs to a run, but there is no config.json"
    with pytest.raises(ConfigError, match=message):
        begin(tmp_path)


def write(text):
    return lambda path: path.write_text(text)


def make_directory(path):
    path.unlink(missing_ok=True)
    path.mkdir()


def make_pipe(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def make_link(path):
    path.unlink(missing_ok=True)
    (path.parent / "mine").write_text("mine")
    path.symlink_to("mine")


def change_steps(path):
    change_record(path.parent, steps="two")


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("config.json", write("{"), "config.json is damaged or of"),
        ("config.json", write("[1]"), "config.json is damaged or of"),
        ("config.json", write("[" * 99_999), "config.json is damaged or"),
        ("config.json", make_directory, "config.json: Is a directory. Move it"),
        ("config.json", make_pipe, "config.json: it is not a regular file. M"),
        ("config.json", change_steps, "config.json is damaged or of another"),
        ("results.json", make_directory, "results.json: Is a directory. Move"),
        ("results.json", make_pipe, "results.json: it is not a regular file"),
        ("results.json", write("3"), "results.json is damaged or of"),
        (
            "results.json",
            write('{"trainer": "a", "final": {}, "config": {}}'),
            "results.json is of a run with another configuration: move it",
        ),
        ("positions.json", write("[]"), "positions.json is damaged or of"),
        ("run.lock", make_directory, "cannot write to --workdir=.*directory"),
        ("run.lock", make_pipe, "cannot write .*: it is not a regular file"),
        ("run.lock", make_link, "run.lock is a symbolic link: remove it"),
        ("config.json.partial", make_directory, "cannot write .*directory"),
        ("config.json.partial", make_pipe, "cannot write .*config.json: "),
        ("config.json.partial", make_link, "partial is a symbolic link: rem"),
    ],
)
def test_broken_files_are_named(tmp_path, name, damage, message):
    begin(tmp_path)
    damage(tmp_path / name)
    with (
        pytest.raises(ConfigError, match=message) as caught,
        open_workdir(tmp_path) as workdir,
    ):
        _ = workdir.results
        workdir.read_positions(2)
    assert "\n" not in str(caught.value)
    if damage is make_link:
        assert (tmp_path / "mine").read_text() == "mine"
        assert (tmp_path / name).is_symlink()


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: {}["final"], "results.json has no final: it is damaged or"),
        (lambda: len(3), "results.json cannot be read: it is damaged"),
        (lambda: float("a"), "cannot be read: .* move its directory away"),
    ],
)
def test_what_is_missing_in_results_is_named(read, message):
    with (
        pytest.raises(ConfigError, match=message),
        naming_damage("results.json"),
    ):
        read()
