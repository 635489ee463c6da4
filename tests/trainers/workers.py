"""Processes of programs, started and signalled by tests."""

import functools
import os
import signal
import time

from benchmarks.faults import training_process
from tests.loading import FORKS

PATIENCE = 600
"""Seconds after which a process is said to hang."""


class Started:
    """A program that has been started, in a fork that ends with the tests.

    Its arguments are those of `run_program`.
    """

    def __init__(self, arguments, log, **options):
        self.log = log
        log.touch()
        self.again = functools.partial(Started, arguments, log, **options)
        self._process = FORKS.Process(
            target=run_program,
            args=([*map(str, arguments)], str(log)),
            kwargs=options,
            daemon=True,
        )
        self._process.start()

    @property
    def output(self):
        """What the process has written."""
        return self.log.read_text()

    def wait(self):
        """The exit status, negative for a signal."""
        self._process.join(PATIENCE)
        assert not self._process.is_alive(), f"hangs: {self.output}"
        return self._process.exitcode

    def wait_for(self, condition, *others):
        """Waits until a condition holds while this one and others run."""
        until = time.monotonic() + PATIENCE
        while not condition():
            for each in (self, *others):
                assert each._process.is_alive(), each.output
            assert time.monotonic() < until, f"hangs: {self.output}"
            time.sleep(0.01)

    def send(self, number):
        """Sends a signal."""
        os.kill(self._process.pid, number)

    def kill(self):
        """Kills the process and waits for its end."""
        self.send(signal.SIGKILL)
        assert self.wait() == -signal.SIGKILL


def run_program(
    arguments,
    log,
    module="trainers.algorithmic",
    environment=None,
    directory=".",
):
    """Runs a module in this process, as `TrainingProcess` does in a fork."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.environ.update(environment or {})
    os.chdir(directory)
    os._exit(training_process._run_module(module, arguments, fresh=False))
