"""How a disturbed process may end, and which endings the drill reports."""

import json
import signal

import pytest

from benchmarks.faults import full_disk
from benchmarks.faults.run import STEPS, Failure
from benchmarks.faults.second_start import start_second
from benchmarks.faults.signals import stop_by
from tests.benchmarks.faults.toy import LOG, EndedProcess, save, write_metrics

SAID = f"{LOG}error: stopped by SIGTERM: run the command again.\n"
TRACEBACK = "Traceback (most recent call last):\n"
BOOT = "Traceback ...\nKeyboardInterrupt\n"
SAVED = "saved and stopped"
ENDED = "ended by the signal"
FAILED = None


def stop(run, number, status, output, *, fresh=True):
    """Stops a run by a signal; how it ended, or `FAILED`."""
    process = EndedProcess(status, output)
    process.fresh = fresh
    name = signal.Signals(number).name
    try:
        return stop_by(number)(run, process)
    except Failure as error:
        assert str(error) == f"exit status {status} after {name}"
        return FAILED
    finally:
        assert process.sent == [number]


@pytest.mark.parametrize(
    ("number", "status", "output", "how"),
    [
        (signal.SIGTERM, 143, SAID, SAVED),
        (signal.SIGTERM, 143, LOG, FAILED),
        (signal.SIGTERM, 143, SAID + TRACEBACK, FAILED),
        (signal.SIGTERM, None, LOG, FAILED),
        (signal.SIGTERM, -15, LOG, FAILED),
        # Python itself starts without a handler, and nothing else does.
        (signal.SIGTERM, -15, "", ENDED),
        (signal.SIGINT, 1, f"trainers/algorithmic.py\n{BOOT}", FAILED),
    ],
)
def test_signals(run, number, status, output, how):
    write_metrics(run.path, 4)
    save(run.path, 4, 4)
    assert stop(run, number, status, output) == how


def test_signals_after_the_last_step(run):
    write_metrics(run.path, STEPS)
    assert stop(run, signal.SIGTERM, 0, LOG) == "ran to its end"
    # Python has no handler while it ends.
    assert stop(run, signal.SIGTERM, -15, LOG) == FAILED
    (run.path / "results.json").write_text("{}")
    assert stop(run, signal.SIGTERM, -15, LOG) == ENDED
    assert stop(run, signal.SIGTERM, -15, LOG, fresh=False) == FAILED


WRITING = "error: cannot write /run/checkpoints/checkpoint-12.partial: "
FULL = f"{WRITING}No space left on device; start again.\n"
NAMED = "said that it cannot write checkpoint-N.partial"


@pytest.mark.parametrize(
    ("status", "output", "how"),
    [
        (1, LOG + FULL, NAMED),
        (0, LOG, "ran to its end"),
        (1, FULL, FAILED),
        (1, LOG, FAILED),
        (1, f"{LOG}{WRITING}Permission denied\n", FAILED),
        (1, f"{LOG}{TRACEBACK}{FULL}", FAILED),
        (None, LOG + FULL, FAILED),
    ],
)
def test_a_full_disk(run, monkeypatch, status, output, how):
    run.path.mkdir()
    # Nobody writes until a real file system is full.
    monkeypatch.setattr(full_disk, "bytes", lambda count: b"", raising=False)
    try:
        found = full_disk.fill_disk(run, EndedProcess(status, output))
    except Failure as error:
        assert f"exit status {status} on a full disk" in str(error)
        found = FAILED
    assert found == how
    assert not (run.path.parent / "ballast").exists()


FINISHED = "7: already finished, see results.json\n"
LEAVING = "USED another process: wait"


@pytest.mark.parametrize(
    ("first", "status", "output", "how"),
    [
        ([None], 2, "USED process 7 on here", "refused: in use by the first"),
        ([0, 0], 0, FINISHED, "already finished"),
        ([None, 0], 2, LEAVING, "refused: the first was finishing"),
        ([None, None], 0, LOG, FAILED),
        ([None], 2, "USED process 8 on here", FAILED),
        ([None], 2, f"USED process 7 on here\n{TRACEBACK}", FAILED),
        ([None], None, LOG, FAILED),
        ([1], 2, "USED process 7 on here", "exit status 1 of the first"),
    ],
)
def test_a_second_start(run, monkeypatch, first, status, output, how):
    run.path.mkdir()
    (run.path / "run.lock").write_text(json.dumps({"process": 7}))
    statuses = iter([None, *first])
    process = EndedProcess(None)
    monkeypatch.setattr(process, "wait", lambda seconds=None: next(statuses))
    output = output.replace("USED ", f"error: {run.path} is in use by ")
    second = EndedProcess(status, output)
    monkeypatch.setattr(run, "start_second", lambda: second)
    try:
        found = start_second(run, process)
    except Failure as error:
        found = how if how and how in str(error) else FAILED
        assert found or f"status {status} of a second" in str(error)
    assert found == how
