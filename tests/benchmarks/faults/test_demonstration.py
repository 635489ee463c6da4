import random
import signal

import pytest

from benchmarks.faults import demonstration as module
from benchmarks.faults.demonstration import (
    MODELS,
    STEPS,
    Demonstration,
    DemonstrationReference,
    disturb_demonstration,
)
from benchmarks.faults.reference import Reference
from benchmarks.faults.run import Failure
from benchmarks.faults.run_files import read_outcome, read_state
from benchmarks.faults.tally import Tally
from tests.benchmarks.faults.toy import LOG, EndedProcess, save, write_metrics


@pytest.fixture
def demonstration(tmp_path):
    state = read_state(save(tmp_path / "undisturbed", STEPS, 1))
    models = {name: Reference({}, {STEPS: state}, {}) for name in MODELS}
    return Demonstration(
        tmp_path / "run",
        tmp_path / "logs",
        DemonstrationReference(models, plot=False, change=0.0),
        random.Random(0),
    )


def stop(demonstration, status, output):
    """Stops it by SIGTERM; returns the endings in the tally."""
    demonstration.rng.choice = lambda numbers: signal.SIGTERM
    tally = Tally({"between": 1})
    process = EndedProcess(status, output)
    try:
        module._stop(demonstration, process, "between", tally)
    finally:
        assert process.sent == [signal.SIGTERM]
    return tally.kinds["between"]["endings"]


def test_moments_of_a_change(demonstration):
    first, second = (model.path for model in demonstration.models)
    found = [demonstration.find_moment()]
    save(first, STEPS, 1)
    found.append(demonstration.find_moment())
    (first / "results.json").write_text("{}")
    found.append(demonstration.find_moment())
    second.mkdir()
    (second / "config.json").write_text("{}")
    found.append(demonstration.find_moment())
    write_metrics(second, 2)
    found.append(demonstration.find_moment())
    assert found == [
        "training the first model",
        "evaluating the first model",
        "between the models",
        "starting the second model",
        "training the second model",
    ]


def test_a_change_begins_when_the_first_model_is_trained(demonstration):
    process = EndedProcess(None)
    save(demonstration.models[0].path, STEPS, 1)
    assert demonstration.wait_for_change(process)
    demonstration.models[1].path.mkdir()
    write_metrics(demonstration.models[1].path, 2)
    assert not demonstration.wait_for_change(process)
    assert not demonstration.wait_for_change(EndedProcess(0))


def test_a_signal_after_the_second_model_is_none_between(demonstration):
    process = EndedProcess(None)
    first, second = (model.path for model in demonstration.models)
    save(first, STEPS, 1)
    second.mkdir()
    assert demonstration.wait_for_change(process)
    (second / "results.json").write_text("{}")
    assert not demonstration.wait_for_change(process)


def test_a_demonstration_that_stops(demonstration):
    said = f"{LOG}error: stopped by SIGTERM: run the command again.\n"
    assert stop(demonstration, 143, said) == {"stopped by SIGTERM": 1}


@pytest.mark.parametrize(
    ("status", "output"),
    [
        (0, LOG),
        (143, LOG),
        (-15, LOG),
        (143, f"{LOG}error: stopped by SIGINT\n"),
        (143, f"{LOG}error: stopped by SIGTERM\nerror: another\n"),
        (143, f"{LOG}error: stopped by SIGTERM\nTraceback (most\n"),
    ],
)
def test_a_demonstration_that_stops_in_another_way(
    demonstration, status, output
):
    with pytest.raises(Failure, match=f"exit status {status} after SIGTERM"):
        stop(demonstration, status, output)


def test_steps_that_were_not_saved(demonstration):
    write_metrics(save(demonstration.models[0].path, STEPS, 1).parents[1], 42)
    with pytest.raises(Failure, match="before SIGTERM were not saved"):
        stop(demonstration, 143, "error: stopped by SIGTERM\n")


def test_faults_that_it_escapes_stay_in_the_list(demonstration, monkeypatch):
    monkeypatch.setattr(demonstration, "start", lambda: EndedProcess(0))
    kinds = ["between"]
    disturb_demonstration(demonstration, kinds, Tally({"between": 1}))
    assert kinds == ["between"]


def test_an_error_without_a_fault_is_noticed(demonstration, monkeypatch):
    monkeypatch.setattr(demonstration, "start", lambda: EndedProcess(1))
    with pytest.raises(Failure, match="exit status 1 without a fault"):
        disturb_demonstration(demonstration, [], Tally({}))


def test_a_second_model_that_is_not_there_is_noticed(demonstration):
    first = demonstration.models[0].path
    write_metrics(save(first, STEPS, 1).parents[1], STEPS)
    (first / "results.json").write_text('{"train": {}, "config": {}}')
    demonstration.models[0].reference.outcome.update(read_outcome(first))
    with pytest.raises(Failure, match="the last checkpoint is missing"):
        demonstration.check_end()
