"""Signals: one clear line, a status that says so, and nothing lost."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.trainers.toy import TOY, assert_same_weights, train_losses
from trainers.devices import interruption
from trainers.devices.interruption import StopRequest
from trainers.errors import StoppedError

CHANGES = {
    "encoding": "RandomizedRoPE",
    "dropout": 0.1,
    "steps": 60,
    "steps_per_loop": 1,
    "checkpoint_every": 7,
    "evaluate_every": 20,
    "train_length": "2,3",
    # Many, so that an evaluation takes a while.
    "test_lengths": "5-80",
    "max_position": 256,
}
MESSAGE = "error: stopped by {}: run the same command again to resume."


def flags(path, **changes):
    changes = {**TOY, **CHANGES, **changes, "workdir": path}
    return [f"--{name}={value}" for name, value in changes.items()]


def assert_stopped(process, number):
    assert process.wait() == 128 + number, process.output
    assert "Traceback" not in process.output
    lines = process.output.splitlines()
    name = signal.Signals(number).name
    assert lines[-1] == MESSAGE.format(name)
    assert sum("error" in line for line in lines) == 1


def rows(path):
    """Step and metric of all rows in `metrics.csv`."""
    metrics = path / "metrics.csv"
    text = metrics.read_text() if metrics.exists() else ""
    cells = [line.split(",") for line in text.splitlines()[1:]]
    return [(int(row[0]), row[2]) for row in cells if len(row) == 5]


def steps(path):
    return [step for step, metric in rows(path) if metric == "train_loss"]


@pytest.mark.process
def test_a_killed_and_a_stopped_run_go_on(nursery, tmp_path):
    changes = {"steps": 30, "evaluate_every": 10, "test_lengths": "5"}
    undisturbed = nursery.start(
        flags(tmp_path / "whole", **changes), tmp_path / "log"
    )
    path = tmp_path / "disturbed"
    for step, number in ((12, signal.SIGKILL), (24, signal.SIGTERM)):
        process = nursery.start(
            flags(path, **changes), tmp_path / f"log-{step}"
        )
        process.wait_for(lambda step=step: step in steps(path))
        process.send(number)
        if number == signal.SIGTERM:
            assert_stopped(process, number)
        else:
            process.wait()
    assert not (path / "results.json").exists()
    process = nursery.start(flags(path, **changes), tmp_path / "log-end")
    assert process.wait() == undisturbed.wait() == 0, process.output
    assert "resuming after step" in process.output
    assert_same_weights(path, tmp_path / "whole")
    assert train_losses(path) == train_losses(tmp_path / "whole")


@pytest.mark.process
@pytest.mark.slow
def test_a_run_stopped_four_times_goes_on(nursery, tmp_path):
    undisturbed = nursery.start(flags(tmp_path / "whole"), tmp_path / "log")
    path, stops = tmp_path / "stopped", 0

    def start():
        return nursery.start(flags(path), tmp_path / f"log-{stops}")

    for step, number in ((5, signal.SIGTERM), (25, signal.SIGINT)):
        stops += 1
        process = start()
        process.wait_for(lambda step=step: step in steps(path))
        process.send(number)
        assert_stopped(process, number)
        assert (path / f"checkpoints/checkpoint-{steps(path)[-1]}.npz").exists()
    for step, number in ((40, signal.SIGTERM), (60, signal.SIGINT)):
        stops += 1
        process = start()
        process.wait_for(
            lambda step=step, process=process: (
                step in steps(path) and "evaluated length" in process.output
            )
        )
        process.send(number)
        assert_stopped(process, number)
        assert steps(path)[-1] == step
        # In the midst of the evaluation.
        assert (step, "accuracy") not in rows(path)
        assert (path / f"checkpoints/checkpoint-{step}.npz").exists()
    process = start()
    assert process.wait() == undisturbed.wait() == 0, process.output
    assert_same_weights(path, tmp_path / "whole")
    assert train_losses(path) == train_losses(tmp_path / "whole")


class OneWorker:
    def on_any_worker(self, flag):
        return flag


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_after_the_last_check_is_not_lost(capfd, number):
    before = signal.getsignal(number)
    with (
        pytest.raises(StoppedError) as caught,
        StopRequest(OneWorker()) as stop,
    ):
        stop.check()
        os.kill(os.getpid(), number)
    assert caught.value.number == number
    assert signal.getsignal(number) is before


def test_a_signal_whose_error_a_library_swallows_is_not_lost(monkeypatch):
    monkeypatch.setattr(interruption, "_received", None)
    interruption.check_received()
    with contextlib.suppress(StoppedError):
        interruption.raise_stopped(signal.SIGTERM, None)
    with pytest.raises(StoppedError) as stopped:
        interruption.check_received()
    assert stopped.value.number == signal.SIGTERM
    with pytest.raises(StoppedError), StopRequest(OneWorker()):
        pass


@pytest.mark.parametrize("error", [StoppedError(signal.SIGTERM), ValueError()])
def test_a_destructor_reports_all_errors_but_a_signals(monkeypatch, error):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)

    class Interrupted:
        def __del__(self):
            raise error

    with interruption.destructors_silenced():
        Interrupted()
    assert len(reported) == isinstance(error, ValueError)
    assert sys.unraisablehook == reported.append


def test_an_error_is_not_hidden_by_a_signal(capfd):
    with pytest.raises(ValueError, match="own"), StopRequest(OneWorker()):
        os.kill(os.getpid(), signal.SIGTERM)
        raise ValueError("own")


@pytest.mark.process
def test_a_signal_between_two_models_stops_before_the_second(nursery, tmp_path):
    changes = {"encoding": "", "steps": 5, "test_lengths": "5"}
    process = nursery.start(flags(tmp_path, **changes), tmp_path / "log")
    process.wait_for((tmp_path / "RoPE" / "results.json").exists)
    process.send(signal.SIGTERM)
    assert_stopped(process, signal.SIGTERM)
    assert not (tmp_path / "RandomizedRoPE" / "results.json").exists()
    process = process.again()
    assert process.wait() == 0
    assert "already finished" in process.output


@pytest.mark.process
@pytest.mark.parametrize("seconds", [0.3, 1, 2, 5])
def test_ctrl_c_ends_a_program_in_one_line_at_any_moment(tmp_path, seconds):
    arguments = flags(tmp_path, steps=10**6, test_lengths="5")
    command = [sys.executable, "-m", "trainers.algorithmic", *arguments]
    process = subprocess.Popen(
        command,
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


@pytest.mark.process
def test_a_second_run_in_a_directory_is_refused(nursery, tmp_path):
    path = tmp_path / "run"
    first = nursery.start(flags(path, steps=10**6), tmp_path / "first")
    first.wait_for(lambda: 3 in steps(path))
    second = nursery.start(flags(path, steps=10**6), tmp_path / "second")
    assert second.wait() == 2
    (line,) = second.output.splitlines()
    assert line.startswith(f"error: {path} is in use by process ")
    first.send(signal.SIGKILL)
    first.wait()
    third = nursery.start(flags(path, steps=10**6), tmp_path / "third")
    third.wait_for(lambda: "resuming after step" in third.output)


@pytest.mark.process
def test_the_second_ctrl_c_ends_a_run_at_once(nursery, tmp_path):
    # While the first step is put together, which takes seconds.
    deep = flags(tmp_path / "run", num_layers=12)
    process = nursery.start(deep, tmp_path / "log")
    process.wait_for(lambda: "replica(s), here" in process.output)
    process.send(signal.SIGINT)
    process.wait_for(lambda: "stopping after these steps" in process.output)
    process.send(signal.SIGINT)
    assert process.wait() == 130
    assert "Traceback" not in process.output
    assert process.output.splitlines()[-1] == (
        "error: interrupted: run the same command again to resume from the "
        "last checkpoint."
    )
    assert not steps(tmp_path / "run")


@pytest.mark.process
@pytest.mark.parametrize(
    ("number", "to"),
    [
        (signal.SIGTERM, [1]),
        # Ctrl-C in a terminal reaches all of its processes.
        pytest.param(signal.SIGINT, [0, 1], marks=pytest.mark.slow),
    ],
)
def test_a_signal_stops_all_workers(nursery, tmp_path, number, to):
    changes = {"dropout": 0.0, "evaluate_every": 0, "test_lengths": "5"}
    mirrored = nursery.start_runs(
        tmp_path / "mirrored",
        {"run": {**CHANGES, **changes, "strategy": "mirrored"}},
        devices=2,
    )
    path = tmp_path / "run"
    commands = [flags(path, **changes, strategy="multi_worker")] * 2
    workers = nursery.start_workers(commands, tmp_path)
    workers[0].wait_for(lambda: 25 in steps(path))
    for index in to:
        workers[index].send(number)
    for index, worker in enumerate(workers):
        # One that was not asked itself ends as by the usual signal.
        assert_stopped(worker, number if index in to else signal.SIGTERM)
    last = steps(path)[-1]
    assert (path / f"checkpoints/checkpoint-{last}.npz").exists()

    for process in [*mirrored, *(worker.again() for worker in workers)]:
        assert process.wait() == 0, process.output
    assert len(steps(path)) == 60
    np.testing.assert_allclose(
        train_losses(path), train_losses(tmp_path / "mirrored" / "run"), 2e-5
    )
