import errno
import json

import pytest

from tests.trainers.toy import toy_config
from trainers.algorithmic import TaskProblem
from trainers.errors import ConfigError, TrainingError
from trainers.records.metrics import Metrics, average_unseen
from trainers.records.workdir import Workdir, versions

PROBLEM = TaskProblem(toy_config(train_length="1-3", test_lengths="4,5"))


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
    workdir = Workdir(tmp_path, toy_config())
    log = metrics(tmp_path, {2: {4: 0.9}, 4: {4: 0.4}})
    results = workdir.make_results(log, PROBLEM, seconds=3.0)
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
    results = Workdir(tmp_path, toy_config()).make_results(
        log, problem, seconds=1.0
    )
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
    workdir = Workdir(tmp_path, toy_config())
    workdir.write_json("results.json", {"a": 1})

    def fail(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(TrainingError, match=r"results.json: No space left"):
        workdir.write_json("results.json", {"a": 2})
    assert json.loads((tmp_path / "results.json").read_text()) == {"a": 1}


def test_where_and_on_what_a_run_goes_on_may_change(tmp_path):
    Workdir(tmp_path, toy_config())
    Workdir(tmp_path, toy_config(strategy="mirrored", steps_per_loop=7))
    with pytest.raises(ConfigError, match="--seed was 0, is 1"):
        Workdir(tmp_path, toy_config(seed=1))


def test_broken_files_are_named(tmp_path):
    Workdir(tmp_path, toy_config())
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ConfigError, match=r"config\.json is not valid JSON"):
        Workdir(tmp_path, toy_config())


def test_versions_name_what_results_depend_on():
    assert {"python", "tensorflow", "keras", "numpy"} <= versions().keys()
