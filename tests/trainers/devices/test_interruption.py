"""Signals: one clear line, a status that says so, and nothing lost."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from benchmarks.faults.file_operations import Trainer, read_end
from benchmarks.faults.run_files import read_metrics
from tests.trainers.toy import TOY
from trainers import experiment
from trainers.devices import interruption
from trainers.devices.interruption import StopRequest
from trainers.errors import StoppedError
from trainers.options.command import errors_as_statuses
from trainers.records.progress import Progress

SIGNALS = [signal.SIGTERM, signal.SIGINT]


class OneWorker:
    def on_any_worker(self, flag):
        return flag


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


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_after_the_last_check_is_not_lost(capfd, number):
    before = signal.getsignal(number)
    with (
        pytest.raises(StoppedError) as caught,
        StopRequest(OneWorker()) as stop,
    ):
        stop.check()
        send(number)
    assert caught.value.number == number
    assert signal.getsignal(number) is before
    said = f"{signal.Signals(number).name}: stopping after these steps"
    assert said in capfd.readouterr().out


def test_the_state_is_saved_before_a_stop(capfd):
    saved = []
    with (
        pytest.raises(StoppedError),
        StopRequest(OneWorker()) as stop,
    ):
        stop.check(lambda: saved.append("too early"))
        send(signal.SIGINT)
        stop.check(lambda: saved.append("in time"))
    assert saved == ["in time"]


def test_the_second_ctrl_c_ends_at_once(capfd):
    with StopRequest(OneWorker()) as stop:
        send(signal.SIGTERM)
        send(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)
        with pytest.raises(StoppedError):
            stop.check()
        stop._signal = None


def test_a_signal_whose_error_a_library_swallows_is_not_lost():
    with handled(interruption.raise_stopped):
        interruption.check_received()
        with contextlib.suppress(StoppedError):
            send(signal.SIGTERM)
        with pytest.raises(StoppedError) as stopped:
            interruption.check_received()
        assert stopped.value.number == signal.SIGTERM
        with pytest.raises(StoppedError), StopRequest(OneWorker()):
            pass


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (
            StoppedError(signal.SIGTERM),
            143,
            "stopped by SIGTERM: run the same command again to resume.",
        ),
        (
            KeyboardInterrupt(),
            130,
            "interrupted: run the same command again to resume from the last "
            "checkpoint.",
        ),
    ],
)
def test_statuses_and_messages(capsys, error, status, message):
    with pytest.raises(SystemExit) as ended, errors_as_statuses():
        raise error
    assert ended.value.code == status
    assert capsys.readouterr().err == f"error: {message}\n"


@pytest.fixture(scope="module")
def trainer():
    return Trainer()


@pytest.fixture(scope="module")
def undisturbed(trainer, tmp_path_factory):
    path = tmp_path_factory.mktemp("undisturbed")
    trainer.start(path)
    return read_end(path)


def interrupt(act, after):
    """Makes a function send a signal before it acts, after some calls."""
    calls = []

    def act_after_signal(*arguments, **keywords):
        if len(calls) == after:
            send(signal.SIGTERM)
        calls.append(act)
        return act(*arguments, **keywords)

    return act_after_signal


@pytest.mark.product
@pytest.mark.parametrize(
    ("owner", "name", "after", "step", "is_evaluated"),
    [
        (Progress, "on_train_batch_end", 2, 3, False),
        # In the midst of the evaluation after step 2.
        (experiment, "show_evaluation", 2, 2, False),
        (experiment, "describe_floor", 0, 4, True),
    ],
)
def test_a_stopped_run_is_saved_and_goes_on(
    trainer,
    undisturbed,
    tmp_path,
    monkeypatch,
    owner,
    name,
    after,
    step,
    is_evaluated,
):
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, interrupt(getattr(owner, name), after))
        with pytest.raises(StoppedError):
            trainer.start(tmp_path)
    assert (tmp_path / "checkpoints" / f"checkpoint-{step}.npz").exists()
    rows = [row[:2] for row in read_metrics(tmp_path)]
    assert rows[-1][0] == str(step)
    assert ((str(step), "accuracy") in rows) == is_evaluated
    trainer.start(tmp_path)
    assert read_end(tmp_path) == undisturbed


def make_flags(path, **changes):
    """Flags of a run that goes on until it is stopped."""
    flags = {**TOY, **changes, "steps": 10**6, "workdir": path}
    return [f"--{name}={value}" for name, value in flags.items()]


@pytest.mark.process
def test_a_run_refuses_a_second_one_and_survives_its_end(nursery, tmp_path):
    path = tmp_path / "run"
    changes = {"steps_per_loop": 1, "checkpoint_every": 7, "test_lengths": "5"}
    flags = make_flags(path, **changes)

    def start(name):
        return nursery.start(flags, tmp_path / name)

    first = start("first")
    saved = path / "checkpoints" / "checkpoint-7.npz"
    first.wait_for(saved.exists)
    second = start("second")
    assert second.wait() == 2
    (line,) = second.output.splitlines()
    assert line.startswith(f"error: {path} is in use by process ")
    first.kill()
    third = start("third")
    third.wait_for(lambda: "resuming after step" in third.output)
    third.send(signal.SIGTERM)
    assert third.wait() == 143
    assert "Traceback" not in third.output
    assert third.output.splitlines()[-1] == (
        "error: stopped by SIGTERM: run the same command again to resume."
    )


@pytest.mark.process
@pytest.mark.parametrize("seconds", [0.3, 3])
def test_ctrl_c_ends_a_program_in_one_line_at_any_moment(tmp_path, seconds):
    flags = make_flags(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-m", "trainers.algorithmic", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # As from a shell: importing the trainers here has set the variable.
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.default_int_handler
        ),
    )
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 130
    (line,) = errors.splitlines()
    assert line.startswith("error: stopped by SIGINT")
