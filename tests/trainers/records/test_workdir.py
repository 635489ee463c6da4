"""The working directory of a run: which runs it takes, and its JSON files."""

import json
import os

import pytest

from tests.trainers.toy import change, toy_config
from trainers.algorithmic import TaskProblem
from trainers.engine.backend import make_strategy
from trainers.errors import ConfigError, OtherDataError
from trainers.records.metrics import Metrics
from trainers.records.workdir import Workdir, make_digest


def open_workdir(
    path, trainer="algorithmic", data_digest="", extensible=True, **changes
):
    options = {"data_digest": data_digest, "extensible": extensible}
    return Workdir(path, toy_config(**changes), trainer, **options)


def begin(path, **changes):
    """Begins a run, or resumes it; returns its digest."""
    with open_workdir(path, **changes) as workdir:
        return workdir.digest


def change_record(path, **changes):
    """Changes flags in `config.json`, and its digest; `...` removes a flag."""
    record = json.loads((path / "config.json").read_text())
    config = {**record["config"], **changes}
    config = {n: value for n, value in config.items() if value is not ...}
    fixed = {n: config[n] for n in open_workdir(path)._fixed if n in config}
    digest = make_digest(record["trainer"], fixed, {})
    change(path / "config.json", config=config, digest=digest)
    return digest


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
    assert results["train"]["steps_per_second"] == 0.5
    # A run of more steps is not finished.
    changes = {"strategy": "mirrored", "steps_per_loop": 7, "steps": 6}
    with open_workdir(tmp_path, **changes) as workdir:
        assert workdir.digest == results["digest"]
        assert workdir.results is None
        assert workdir.read_positions(2) == {}
        workdir.write_json("positions.json", {"step": 2, "a": 1})
        assert workdir.read_positions(2) == {"a": 1}
        assert workdir.read_positions(4) == {}


def test_flags_of_other_versions(tmp_path):
    digest = begin(tmp_path)
    # As if the run had begun before this flag was there.
    older = change_record(tmp_path, clip_norm=...)
    assert begin(tmp_path) == begin(tmp_path) == older != digest
    with pytest.raises(ConfigError, match=r"--clip_norm was 1\.0, is 2\.0"):
        begin(tmp_path, clip_norm=2.0)
    change_record(tmp_path, gone=3)
    with pytest.raises(ConfigError, match="--gone was 3, is no flag of this"):
        begin(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message", "error"),
    [
        ({"seed": 1}, r"\(--seed was 0, is 1\): choose", ConfigError),
        ({"steps": 1}, "--steps was 2, is 1: it can only", ConfigError),
        ({"steps": 8, "extensible": False}, "the schedule of", ConfigError),
        ({"trainer": "other"}, "trainer was algorithmic, is oth", ConfigError),
        ({"data_digest": "sha256:cd34"}, "run on other data", OtherDataError),
    ],
)
def test_another_run_is_refused(tmp_path, changes, message, error):
    begin(tmp_path, data_digest="sha256:ab12")
    before = (tmp_path / "config.json").read_bytes()
    flags = {"data_digest": "sha256:ab12", **changes}
    with pytest.raises(error, match=message):
        begin(tmp_path, **flags)
    assert (tmp_path / "config.json").read_bytes() == before


@pytest.mark.parametrize("name", ["metrics.csv", "checkpoints/best-2.npz"])
def test_files_of_a_run_without_its_configuration(tmp_path, name):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / name).touch()
    message = f"{name} belongs to a run, but there is no config.json"
    with pytest.raises(ConfigError, match=message):
        begin(tmp_path)


def write(text):
    return lambda path: path.write_text(text)


OTHER = '{"trainer": "a", "final": {}, "config": {}}'


def make_directory(path):
    path.unlink(missing_ok=True)
    path.mkdir()


def make_pipe(path):
    path.unlink()
    os.mkfifo(path)


def make_link(path):
    path.unlink(missing_ok=True)
    (path.parent / "mine").write_text("mine")
    path.symlink_to("mine")


def change_steps(path):
    change_record(path.parent, steps="two")


def change_digest(path):
    path.write_text(path.read_text().replace('"digest": "', '"digest": "0'))


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("config.json", write("[" * 99_999), "config.json is damaged or"),
        ("config.json", make_pipe, "config.json: it is not a regular file. M"),
        ("config.json", change_steps, "config.json is damaged or of another"),
        ("config.json", change_digest, "config.json was changed after the run"),
        ("results.json", make_directory, "results.json: Is a directory. Move"),
        ("results.json", write(OTHER), "results.json is of a run with another"),
        ("positions.json", write("[]"), "positions.json is damaged or of"),
        ("run.lock", make_directory, "cannot write to --workdir=.*directory"),
        ("run.lock", make_link, "run.lock is a symbolic link: remove it"),
        ("config.json.partial", make_directory, "cannot write .*directory"),
        ("config.json.partial", make_link, "partial is a symbolic link: rem"),
    ],
)
def test_broken_files_are_named(tmp_path, name, damage, message):
    begin(tmp_path)
    damage(tmp_path / name)
    with (
        pytest.raises(ConfigError, match=message),
        open_workdir(tmp_path) as workdir,
    ):
        _ = workdir.results
        workdir.read_positions(2)
    if damage is make_link:
        assert (tmp_path / "mine").read_text() == "mine"
