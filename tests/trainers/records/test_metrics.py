"""The table of a run's metrics: its rows, its evaluations and its damage."""

import os

import pytest

from tests.trainers.toy import toy_config
from trainers.algorithmic import TaskProblem
from trainers.errors import ConfigError
from trainers.records.metrics import COLUMNS, Metrics

PROBLEM = TaskProblem(toy_config(train_length="1-3", test_lengths="4,5"))
HEAD = ",".join(COLUMNS)


def write(path, evaluations, problem=PROBLEM, metric="accuracy"):
    """Writes steps and their evaluations `{step: {length: value}}`."""
    log = Metrics(path, problem)
    log.on_train_begin({"step": 0})
    for step, by_length in evaluations.items():
        log.on_train_batch_end(step, {"loss": 0.5, "seconds": step / 10})
        log.add_evaluation(step, step / 10, {metric: by_length})
    return log


def test_evaluations_by_step_with_their_score(tmp_path):
    log = write(tmp_path, {2: {3: 1.0, 4: 0.5, 6: 0.7}, 4: {3: 0.9, 4: 0.1}})
    assert log.evaluations() == {
        2: {
            "accuracy_by_length": {"3": 1.0, "4": 0.5, "6": 0.7},
            "score": pytest.approx(0.6),
            "step": 2,
        },
        4: {
            "accuracy_by_length": {"3": 0.9, "4": 0.1},
            "score": pytest.approx(0.1),
            "step": 4,
        },
    }
    assert (tmp_path / "metrics.csv").read_text().splitlines()[:3] == [
        "step,seconds,metric,length,value",
        "2,0.200,train_loss,,0.5",
        "2,0.200,accuracy,3,1.0",
    ]
    assert list((tmp_path / "tensorboard").glob("events.*"))


@pytest.mark.parametrize(
    ("metric", "values"),
    [(PROBLEM.metrics[0], (0.5, 0.9, 0.9)), (PROBLEM.metrics[2], (9, 4, 4))],
)
def test_the_best_evaluation_is_the_first_of_its_score(
    tmp_path, metric, values
):
    problem = TaskProblem(toy_config(train_length="1-3", test_lengths="4,5"))
    problem.metrics = (metric,)
    steps = dict(zip((2, 4, 6), values, strict=True))
    evaluations = {step: {4: value} for step, value in steps.items()}
    log = write(tmp_path, evaluations, problem, metric.name)
    assert [log.is_best(step) for step in steps] == [True, True, False]
    assert log.best(list(log.evaluations().values()))["step"] == 4


def test_an_evaluation_is_there_when_all_of_its_lengths_are(tmp_path):
    log = write(tmp_path, {})
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


@pytest.mark.parametrize(
    "tail", [b"", b"4,0.4,accura", b"4,0.4,accu" + bytes(4096), bytes(9)]
)
def test_a_resumed_run_drops_what_came_after_its_checkpoint(tmp_path, tail):
    log = write(tmp_path, {2: {4: 0.9}, 4: {4: 0.4}})
    before = log.evaluations()
    path = tmp_path / "metrics.csv"
    with path.open("ab") as file:
        file.write(tail)
    assert log.evaluations() == before
    log.on_train_begin({"step": 2})
    assert log.evaluations() == {2: before[2]}
    assert (
        path.read_bytes().count(b"\n") == 3 and b"\0" not in path.read_bytes()
    )


def make_directory(path):
    path.unlink()
    path.mkdir()


def make_pipe(path):
    path.unlink()
    os.mkfifo(path)


def write_rows(*rows):
    return lambda path: path.write_text("\n".join((HEAD, *rows)) + "\n")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (make_directory, "cannot read .*metrics.csv: Is a directory. Move it"),
        (make_pipe, "metrics.csv: it is not a regular file"),
        (write_rows("2,0,x,3", ""), "damaged in line 2: remove that line and"),
        (write_rows("2,0,x,3,1", "2,0,x,a,1"), "is damaged in line 3: remove"),
        (write_rows("2,0,x,5,3"), "has no accuracy of step 2: remove the lin"),
    ],
)
def test_damaged_files_are_named(tmp_path, damage, message):
    log = write(tmp_path, {2: {4: 0.9}})
    damage(tmp_path / "metrics.csv")
    with pytest.raises(ConfigError, match=message) as caught:
        log.evaluations()
    assert "\n" not in str(caught.value)
