"""Signals: one clear line, a status that says so, and nothing lost."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.faults.file_operations import Trainer, read_end
from benchmarks.faults.run_files import read_metrics
from tests.trainers.devices.worker import SecondWorker
from trainers import experiment
from trainers.devices import interruption
from trainers.devices.interruption import StopRequest
from trainers.errors import StoppedError
from trainers.records.progress import Progress

SIGNALS = [signal.SIGTERM, signal.SIGINT]


def make_request():
    return StopRequest(SecondWorker())


def send(number):
    os.kill(os.getpid(), number)


@contextlib.contextmanager
def handled(handler):
    """Context in which signals are handled, as in a program."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    interruption.handle_signals(handler)
    try:
        yield
    finally:
        interruption.handle_signals(handler)
        for number, known in before.items():
            signal.signal(number, known)


def test_a_signal_after_the_last_check_is_not_lost(capfd):
    before, saved = signal.getsignal(signal.SIGINT), []
    with pytest.raises(StoppedError) as caught, make_request() as stop:
        stop.check(lambda: saved.append("too early"))
        send(signal.SIGINT)
    assert (saved, caught.value.number) == ([], signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    assert "SIGINT: stopping after these steps" in capfd.readouterr().out
    # It hides no error.
    with pytest.raises(ValueError, match="own"), make_request():
        send(signal.SIGTERM)
        raise ValueError("own")


def test_a_signal_to_another_worker_counts_as_sigterm():
    saved = []
    request = StopRequest(SecondWorker(agrees=True))
    with pytest.raises(StoppedError) as caught, request as stop:
        stop.check(lambda: saved.append("in time"))
    assert (saved, caught.value.number) == (["in time"], signal.SIGTERM)


def test_the_second_ctrl_c_ends_at_once():
    with make_request() as stop:
        send(signal.SIGTERM)
        send(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)
        with pytest.raises(StoppedError):
            stop.check()
        stop._signal = None


def test_a_signal_stops_at_once_where_nothing_can_be_lost():
    with make_request() as stop:
        # From then on, a signal waits again.
        with stop.at_once():
            pass
        send(signal.SIGTERM)
        with pytest.raises(StoppedError), stop.at_once():
            pytest.fail("the earlier signal is late")
        stop._signal = None
        with pytest.raises(StoppedError), stop.at_once():
            send(signal.SIGTERM)
            pytest.fail("the signal is late")
        stop._signal = None


def test_a_signal_whose_error_a_library_swallows_is_not_lost():
    with handled(interruption.raise_stopped):
        interruption.check_received()
        with contextlib.suppress(StoppedError):
            send(signal.SIGTERM)
        with pytest.raises(StoppedError):
            interruption.check_received()
        with pytest.raises(StoppedError), make_request():
            pass


def test_ignored_signals_stay_ignored():
    with handled(interruption.raise_stopped):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        interruption.handle_signals(interruption.end_at_once)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is interruption.end_at_once


def test_a_destructor_reports_all_errors_but_a_signals(monkeypatch):
    reported, errors = [], [StoppedError(signal.SIGTERM), ValueError()]
    monkeypatch.setattr(sys, "unraisablehook", reported.append)

    class Interrupted:
        def __del__(self):
            raise errors.pop()

    with interruption.destructors_silenced():
        for _ in range(2):
            Interrupted()
    assert [type(found.exc_value) for found in reported] == [ValueError]
    assert sys.unraisablehook == reported.append


def interrupt(act):
    """Makes a function send a signal before its third call."""
    calls = []

    def act_after_signal(*arguments, **keywords):
        calls.append(act)
        if len(calls) == 3:
            send(signal.SIGTERM)
        return act(*arguments, **keywords)

    return act_after_signal


@pytest.mark.product
def test_a_stopped_run_is_saved_and_goes_on(tmp_path, monkeypatch):
    trainer = Trainer()
    trainer.start(tmp_path / "undisturbed")
    for owner, name, step in (
        (Progress, "on_train_batch_end", 3),
        # In the midst of the evaluation after step 2.
        (experiment, "show_evaluation", 2),
    ):
        path = tmp_path / name
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, interrupt(getattr(owner, name)))
            with pytest.raises(StoppedError):
                trainer.start(path)
        assert (path / "checkpoints" / f"checkpoint-{step}.npz").exists()
        rows = [row[:2] for row in read_metrics(path)]
        assert rows[-1][0] == str(step)
        assert (str(step), "accuracy") not in rows
        trainer.start(path)
        assert read_end(path) == read_end(tmp_path / "undisturbed")


@pytest.mark.process
def test_ctrl_c_ends_a_program_in_one_line_during_its_imports(tmp_path):
    # Whoever runs the tests may ignore Ctrl-C.
    heed = (
        "import os, signal, sys; "
        "signal.signal(signal.SIGINT, signal.SIG_DFL); "
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    command = ("-m", "trainers.algorithmic", f"--workdir={tmp_path}")
    process = subprocess.Popen(
        [sys.executable, "-c", heed, *command],
        stderr=subprocess.PIPE,
        text=True,
    )
    libraries = Path(f"/proc/{process.pid}/maps")
    while "/tensorflow/" not in libraries.read_text():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 130
    # TensorFlow may have written lines of its log before.
    *_, line = errors.splitlines()
    assert line.startswith("error: stopped by SIGINT")
    assert "Traceback" not in errors
