import pytest

from benchmarks.faults import disturb as module
from benchmarks.faults.disturb import disturb
from benchmarks.faults.run import STEPS, Failure
from benchmarks.faults.tally import Tally
from tests.benchmarks.faults.toy import LOG, EndedProcess, save

NOT_WHOLE = f"{LOG}error: no checkpoint is whole: remove it to start"


@pytest.fixture
def run_of(run, monkeypatch):
    """Makes a run whose starts are these processes."""
    run.reference.seconds.update({True: 1.0, False: 1.0})
    # They never come to a step.
    monkeypatch.setattr(module, "AFTER_STEPS", 0)

    def run_of(*processes):
        waiting = list(processes)

        def start():
            run.logs.append(None)
            process = waiting.pop(0)
            process.fresh = False
            return process

        monkeypatch.setattr(run, "start", start)
        return run

    return run_of


def test_faults_that_a_run_escapes_stay_in_the_list(run_of):
    kinds, tally = ["sigterm"], Tally({"sigterm": 1})
    disturb(run_of(EndedProcess(0)), kinds, tally)
    assert kinds == ["sigterm"]
    assert not tally.faults


@pytest.mark.product
def test_a_fault_without_effect_is_tried_again(run_of, monkeypatch):
    effects = iter([None, "killed"])
    monkeypatch.setitem(module.FAULTS, "sigkill", lambda *_: next(effects))
    # They seem to run whenever the drill looks.
    run = run_of(EndedProcess(None), EndedProcess(None), EndedProcess(0))
    kinds, tally = ["sigkill"], Tally({"sigkill": 1})
    disturb(run, kinds, tally)
    assert not kinds
    assert tally.kinds["sigkill"]["endings"] == {"killed": 1}


def test_a_run_goes_on_after_a_second_start(run_of, monkeypatch):
    monkeypatch.setitem(module.FAULTS, "second_start", lambda *_: "refused")
    process = EndedProcess(None)
    statuses = iter([None, None, None, 0])
    monkeypatch.setattr(process, "wait", lambda seconds=None: next(statuses))
    monkeypatch.setattr(module, "AIMED", 0)
    kinds, tally = ["second_start"], Tally({"second_start": 1})
    run = run_of(process)
    # Files that a process still writes are not checked.
    save(run.path, 4, 5)
    disturb(run, kinds, tally)
    assert not kinds
    assert tally.kinds["second_start"]["endings"] == {"refused": 1}


def test_checkpoints_that_are_all_damaged_are_removed(run_of):
    run = run_of(EndedProcess(2, NOT_WHOLE), EndedProcess(0))
    file = save(run.path, 4, 5)
    run.damaged[file] = file.read_bytes()
    disturb(run, [], Tally({}))
    assert not file.exists()


def test_an_error_without_a_fault_is_noticed(run_of):
    run = run_of(EndedProcess(2, NOT_WHOLE))
    save(run.path, STEPS, STEPS)
    with pytest.raises(Failure, match="exit status 2 without a fault"):
        disturb(run, [], Tally({}))
