import errno
import json
import os
import shutil

import pytest

from tests.trainers.toy import toy_config
from trainers.algorithmic import TaskProblem
from trainers.engine.backend import make_strategy
from trainers.engine.problem import average_unseen
from trainers.errors import ConfigError, TrainingError
from trainers.records.metrics import Metrics
from trainers.records.results import versions
from trainers.records.workdir import Workdir, make_digest

PROBLEM = TaskProblem(toy_config(train_length="1-3", test_lengths="4,5"))


def open_workdir(path, data_digest="", **changes):
    config = toy_config(**changes)
    return Workdir(path, config, "algorithmic", data_digest=data_digest)


def make_results(workdir, log, problem):
    strategy = make_strategy("one_device")
    return workdir.make_results(log, problem, strategy, seconds=3.0)


def metrics(path, rows):
    log = Metrics(path, PROBLEM)
    log.on_train_begin({"step": 0})
    for step, by_length in rows.items():
        log.on_train_batch_end(step, {"loss": 0.5, "seconds": step / 10})
        log.add_evaluation(step, step / 10, {"accuracy": by_length})
    return log


def test_evaluations_by_step_with_their_score(tmp_path):
    log = metrics(tmp_path, {2: {3: 1.0, 4: 0.5, 6: 0.7}, 4: {3: 0.9, 4: 0.1}})
    found = log.evaluations()
    assert found[2]["accuracy_by_length"] == {"3": 1.0, "4": 0.5, "6": 0.7}
    assert found[2]["score"] == pytest.approx(0.6)
    assert found[4]["score"] == pytest.approx(0.1)


def test_results_tell_the_best_from_the_final(tmp_path):
    with open_workdir(tmp_path) as workdir:
        log = metrics(tmp_path, {2: {4: 0.9}, 4: {4: 0.4}})
        results = make_results(workdir, log, PROBLEM)
        assert (results["best"]["step"], results["final"]["step"]) == (2, 4)
        workdir.write_json("results.json", results)
        assert workdir.results == results


def test_the_best_evaluation_is_the_first_of_its_score(tmp_path):
    log = metrics(tmp_path, {2: {4: 0.5}, 4: {4: 0.9}, 6: {4: 0.9}})
    assert [log.is_best(step) for step in (2, 4, 6)] == [True, True, False]


def test_the_lowest_loss_is_the_best(tmp_path):
    problem = TaskProblem(toy_config())
    problem.metrics = problem.metrics[2:]
    log = Metrics(tmp_path, problem)
    log.on_train_begin({"step": 0})
    for step, loss in ((2, 0.5), (4, 0.4), (6, 0.6)):
        log.add_evaluation(step, 0.0, {"loss": {5: loss}})
    assert [log.is_best(step) for step in (2, 4, 6)] == [True, True, False]
    (tmp_path / "metrics.csv").rename(tmp_path / "others.csv")
    with open_workdir(tmp_path) as workdir:
        (tmp_path / "others.csv").rename(tmp_path / "metrics.csv")
        results = make_results(workdir, log, problem)
    assert results["best"]["step"] == 4
    assert results["score_metric"] == "loss"
    assert not results["higher_is_better"]


def test_the_mean_over_unseen_lengths():
    by_length = {"1": 1.0, "3": 0.9, "4": 0.5, "6": 0.7}
    assert average_unseen(by_length, 3) == pytest.approx(0.6)
    assert average_unseen(by_length, 6) == pytest.approx(0.775)


def test_an_evaluation_is_there_when_all_of_its_lengths_are(tmp_path):
    log = Metrics(tmp_path, PROBLEM)
    log.on_train_begin({"step": 0})
    lengths = dict.fromkeys(PROBLEM.lengths, 0.9)
    last = lengths.popitem()
    log.add_evaluation(2, 0.2, {"accuracy": {**lengths, last[0]: 0.8}})
    assert not log.has_evaluation(2)
    log.add_evaluation(2, 0.2, {"loss": lengths})
    assert not log.has_evaluation(2)
    log.add_evaluation(2, 0.2, {"loss": dict([last])})
    assert log.has_evaluation(2)
    # A kill, or a full disk, in the midst of the last number.
    path = tmp_path / "metrics.csv"
    path.write_text(path.read_text().rstrip()[:-1])
    assert not log.has_evaluation(2)


def test_a_resumed_run_drops_what_came_after_its_checkpoint(tmp_path):
    metrics(tmp_path, {2: {4: 0.9}, 4: {4: 0.4}})
    with (tmp_path / "metrics.csv").open("a") as file:
        file.write("4,0.4,accura")  # Cut short by a kill.
    log = Metrics(tmp_path, PROBLEM)
    log.on_train_begin({"step": 2})
    assert list(log.evaluations()) == [2]
    assert (tmp_path / "metrics.csv").read_text().count("\n") == 3


def test_files_are_replaced_as_a_whole(tmp_path, monkeypatch):
    def fail(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with open_workdir(tmp_path) as workdir:
        workdir.write_json("results.json", {"a": 1})
        monkeypatch.setattr("os.replace", fail)
        with pytest.raises(TrainingError, match=r"results.json: No space left"):
            workdir.write_json("results.json", {"a": 2})
    assert json.loads((tmp_path / "results.json").read_text()) == {"a": 1}


def test_where_and_on_what_a_run_goes_on_may_change(tmp_path):
    digests = set()
    for changes in ({}, {"strategy": "mirrored", "steps_per_loop": 7}):
        with open_workdir(tmp_path, **changes) as workdir:
            digests.add(workdir.digest)
    assert len(digests) == 1
    with (
        pytest.raises(ConfigError, match="--seed was 0, is 1"),
        open_workdir(tmp_path, seed=1),
    ):
        pass


def test_steps_may_be_raised_but_not_lowered(tmp_path):
    with open_workdir(tmp_path, steps=4) as workdir:
        digest = workdir.digest
    with open_workdir(tmp_path, steps=6) as workdir:
        assert workdir.digest == digest
    with (
        pytest.raises(ConfigError, match="was 6, is 4: it can only be raised"),
        open_workdir(tmp_path, steps=4),
    ):
        pass
    fixed = Workdir(
        tmp_path, toy_config(steps=8), "algorithmic", extensible=False
    )
    with pytest.raises(ConfigError, match="schedule of the learning"), fixed:
        pass


def test_a_flag_newer_than_the_run_has_its_default(tmp_path):
    with open_workdir(tmp_path) as workdir:
        digest = workdir.digest
    record = json.loads((tmp_path / "config.json").read_text())
    # As if the run had begun before this flag was there.
    del record["config"]["clip_norm"]
    fixed = {n: v for n, v in record["config"].items() if n in workdir._fixed}
    record["digest"] = make_digest("algorithmic", fixed)
    (tmp_path / "config.json").write_text(json.dumps(record))
    for _ in range(2):
        with open_workdir(tmp_path) as workdir:
            assert workdir.digest == record["digest"] != digest
    with (
        pytest.raises(ConfigError, match=r"--clip_norm was 1\.0, is 2\.0"),
        open_workdir(tmp_path, clip_norm=2.0),
    ):
        pass


def write_text(text):
    return lambda path: path.write_text(text)


def change_steps(path):
    record = json.loads(path.read_text())
    record["config"]["steps"] = "two"
    path.write_text(json.dumps(record))


def make_file(path):
    shutil.rmtree(path)
    path.touch()


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


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("config.json", write_text("{"), "config.json is damaged or of"),
        ("config.json", write_text("[1]"), "config.json is damaged or of"),
        ("config.json", write_text("[" * 99_999), "config.json is damaged or"),
        ("config.json", make_directory, "config.json: Is a directory. Move it"),
        ("results.json", make_directory, "results.json: Is a directory. Move"),
        ("results.json", write_text("3"), "results.json is damaged or of"),
        (
            "results.json",
            write_text('{"trainer": "a", "final": {}, "config": {}}'),
            "results.json is of a run with another",
        ),
        ("config.json", lambda path: path.unlink(), "but there is no config"),
        ("metrics.csv", make_directory, "metrics.csv: Is a directory. Move it"),
        (
            "metrics.csv",
            write_text("step,seconds,metric,length,value\n2,0,x,3\n\n"),
            "metrics.csv is damaged in line 2: remove that line",
        ),
        ("config.json", change_steps, "config.json is damaged or of another"),
        (
            "metrics.csv",
            write_text("step,seconds,metric,length,value\n2,0,x,5,3\n"),
            "metrics.csv has no accuracy of step 2: remove the lines of that",
        ),
        ("tensorboard", make_file, "cannot write to .*tensorboard: move"),
        ("run.lock", make_directory, "cannot write to --workdir=.*directory"),
        ("run.lock", make_pipe, "cannot write .*: it is not a regular file"),
        ("run.lock", make_link, "run.lock is a symbolic link: remove it"),
        ("config.json", make_pipe, "config.json: it is not a regular file. M"),
        ("results.json", make_pipe, "results.json: it is not a regular file"),
        ("metrics.csv", make_pipe, "metrics.csv: it is not a regular file"),
        ("config.json.partial", make_directory, "cannot write .*directory"),
        ("config.json.partial", make_pipe, "cannot write .*config.json: "),
        ("config.json.partial", make_link, "partial is a symbolic link: rem"),
    ],
)
def test_broken_files_are_named(tmp_path, name, damage, message):
    with open_workdir(tmp_path):
        metrics(tmp_path, {2: {4: 0.9}})
    damage(tmp_path / name)
    with (
        pytest.raises(ConfigError, match=message) as caught,
        open_workdir(tmp_path) as workdir,
    ):
        _ = workdir.results
        Metrics(tmp_path, PROBLEM).evaluations()
    assert "\n" not in str(caught.value)
    if damage is make_link:
        assert (tmp_path / "mine").read_text() == "mine"
        assert (tmp_path / name).is_symlink()


def test_a_configuration_changed_by_hand_is_refused(tmp_path):
    with open_workdir(tmp_path):
        pass
    path = tmp_path / "config.json"
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 5'))
    with (
        pytest.raises(ConfigError, match="changed after the run began"),
        open_workdir(tmp_path, seed=5),
    ):
        pass


def test_other_data_are_refused(tmp_path):
    for _ in range(2):
        with open_workdir(tmp_path, data_digest="sha256:ab12"):
            pass
    message = "contains a run on other data: restore them, or choose another"
    with (
        pytest.raises(ConfigError, match=message),
        open_workdir(tmp_path, data_digest="sha256:cd34"),
    ):
        pass


def test_rows_before_a_tail_of_nul_bytes_count(tmp_path):
    log = metrics(tmp_path, {2: {4: 0.9}})
    before = log.evaluations()
    with (tmp_path / "metrics.csv").open("ab") as file:
        file.write(b"4,0.4,accu" + b"\0" * 4096)
    assert log.evaluations() == before
    log.on_train_begin({"step": 2})
    assert b"\0" not in (tmp_path / "metrics.csv").read_bytes()
    assert log.evaluations() == before


def test_versions_name_what_results_depend_on():
    assert {"python", "tensorflow", "keras", "numpy"} <= versions().keys()
