"""The table of a run's metrics: its rows, its evaluations and its damage."""

import pytest

from tests.trainers.toy import toy_config
from trainers.algorithmic import TaskProblem
from trainers.engine.problem import average_unseen
from trainers.errors import ConfigError, TrainingError
from trainers.records.metrics import COLUMNS, Metrics

PROBLEM = TaskProblem(toy_config(train_length="1-3", test_lengths="4,5"))


def write(path, evaluations, metric="accuracy"):
    """Writes steps and their evaluations `{step: {length: value}}`."""
    log = Metrics(path, PROBLEM)
    log.on_train_begin({"step": 0})
    for step, by_length in evaluations.items():
        log.on_train_batch_end(step, {"loss": 0.5, "seconds": step / 10})
        log.add_evaluation(step, step / 10, {metric: by_length})
    return log


def test_evaluations_by_step_with_their_score(tmp_path):
    log = write(tmp_path, {2: {3: 1.0, 4: 0.5, 6: 0.7}, 4: {3: 0.9, 4: 0.1}})
    first, second = log.evaluations().values()
    assert first == {
        "accuracy_by_length": {"3": 1.0, "4": 0.5, "6": 0.7},
        "score": pytest.approx(0.6),
        "step": 2,
    }
    assert second["score"] == pytest.approx(0.1)
    assert (tmp_path / "metrics.csv").read_text().splitlines()[:3] == [
        "step,seconds,metric,length,value",
        "2,0.200,train_loss,,0.5",
        "2,0.200,accuracy,3,1.0",
    ]
    assert list((tmp_path / "tensorboard").glob("events.*"))
    # Where no length is unseen, over all lengths.
    assert average_unseen({"1": 1.0, "3": 0.9}, 3) == pytest.approx(0.95)


@pytest.mark.parametrize(
    ("metric", "values"),
    [(PROBLEM.metrics[0], (0.5, 0.9, 0.9)), (PROBLEM.metrics[2], (9, 4, 4))],
)
def test_the_best_evaluation_is_the_first_of_its_score(
    tmp_path, monkeypatch, metric, values
):
    monkeypatch.setattr(PROBLEM, "metrics", (metric,))
    steps = dict(zip((2, 4, 6), values, strict=True))
    evaluations = {step: {4: value} for step, value in steps.items()}
    log = write(tmp_path, evaluations, metric.name)
    assert [log.is_best(step) for step in steps] == [True, True, False]
    assert log.best(list(log.evaluations().values()))["step"] == 4


def test_an_evaluation_is_there_when_all_of_its_lengths_are(tmp_path):
    log = write(tmp_path, {})
    lengths = dict.fromkeys(PROBLEM.lengths, 0.9)
    last = lengths.popitem()
    log.add_evaluation(2, 0.2, {"accuracy_low": lengths})
    assert not log.has_evaluation(2)
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
    log = write(tmp_path, {2: {4: 0.9}, 4: {4: 0.4}})
    before = log.evaluations()
    path = tmp_path / "metrics.csv"
    with path.open("ab") as file:
        file.write(b"4,0.4,accu" + bytes(4096))
    assert log.evaluations() == before
    log.on_train_begin({"step": 2})
    assert log.evaluations() == {2: before[2]}
    content = path.read_bytes()
    assert content.count(b"\n") == 3 and b"\0" not in content


def test_damaged_files_are_named(tmp_path):
    log = write(tmp_path, {2: {4: 0.9}})
    for rows, message in (
        ("2,0,x,3,1\n2,0,x,a,1\n", "is damaged in line 3: remove"),
        ("2,0,x,5,3\n4,0,accuracy,5,3\n", "has no accuracy of step 2: remove"),
    ):
        (tmp_path / "metrics.csv").write_text(f"{','.join(COLUMNS)}\n{rows}")
        with pytest.raises(ConfigError, match=message):
            log.evaluations()


def test_a_file_that_is_gone_is_not_begun_again(tmp_path):
    log = write(tmp_path, {2: {4: 0.9}})
    (tmp_path / "metrics.csv").unlink()
    assert log.evaluations() == {}
    with pytest.raises(TrainingError, match=r"metrics.csv: No such file"):
        log.on_train_batch_end(4, {"loss": 0.5, "seconds": 1.0})


def test_a_file_in_place_of_the_directory_of_tensorboard(tmp_path):
    (tmp_path / "tensorboard").touch()
    with pytest.raises(ConfigError, match=r"cannot write to .*board: move"):
        Metrics(tmp_path, PROBLEM)
