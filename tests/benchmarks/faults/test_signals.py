import signal

import pytest

from benchmarks.faults.run import STEPS, Failure
from benchmarks.faults.signals import stop_by
from tests.benchmarks.faults.toy import LOG, EndedProcess, save, write_metrics

SAID = f"{LOG}error: stopped by SIGTERM: run the command again.\n"
stop = stop_by(signal.SIGTERM)


def test_a_run_that_saves_and_stops(run):
    write_metrics(run.path, 4)
    save(run.path, 4, 4)
    process = EndedProcess(143, SAID)
    assert stop(run, process) == "saved and stopped"
    assert process.sent == [signal.SIGTERM]


def test_steps_that_were_not_saved(run):
    write_metrics(run.path, 4, 6)
    save(run.path, 4, 4)
    with pytest.raises(Failure, match="before SIGTERM were not saved"):
        stop(run, EndedProcess(143, SAID))


@pytest.mark.parametrize(
    ("status", "output"),
    [
        (143, LOG),
        (143, f"{SAID}Traceback (most recent call last):\n"),
        (1, SAID),
        (0, LOG),
        (None, LOG),
    ],
)
def test_a_run_that_stops_in_another_way(run, status, output):
    write_metrics(run.path, 4)
    save(run.path, 4, 4)
    with pytest.raises(Failure, match=f"exit status {status} after SIGTERM"):
        stop(run, EndedProcess(status, output))


def test_a_signal_before_the_start_and_after_the_end(run):
    assert stop(run, EndedProcess(-15, "")) == "ended by the signal"
    write_metrics(run.path, STEPS)
    assert stop(run, EndedProcess(0)) == "ran to its end"


def test_a_signal_while_python_ends(run):
    write_metrics(run.path, STEPS)
    process = EndedProcess(-15)
    with pytest.raises(Failure, match="exit status -15 after SIGTERM"):
        stop(run, process)
    (run.path / "results.json").write_text("{}")
    assert stop(run, process) == "ended by the signal"
    process.fresh = False
    with pytest.raises(Failure, match="exit status -15 after SIGTERM"):
        stop(run, process)


def test_only_python_itself_may_start_without_a_handler(run):
    interrupt = stop_by(signal.SIGINT)
    boot = "Traceback ...\nKeyboardInterrupt\n"
    assert interrupt(run, EndedProcess(1, boot)) == "ended by the signal"
    with pytest.raises(Failure, match="exit status 1 after SIGINT"):
        interrupt(run, EndedProcess(1, f"trainers/algorithmic.py\n{boot}"))
    with pytest.raises(Failure, match="exit status 0 after SIGINT"):
        interrupt(run, EndedProcess(0, ""))
