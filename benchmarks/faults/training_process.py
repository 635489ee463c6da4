"""Processes that run a trainer: forks of this process, or fresh ones."""

import os
import pathlib
import re
import runpy
import signal
import sys
import time
import traceback

# Imported once: most training processes are forks of this process.
import trainers.algorithmic  # noqa: F401
from trainers.devices.interruption import end_at_once

PATIENCE = 300
"""Seconds after which a process counts as hanging."""


class TrainingProcess:
    """Runs a trainer in a fork of this process, or in a fresh one.

    A fork behaves as a fresh process only while this process has computed
    nothing with TensorFlow.

    Args:
        arguments: Command-line arguments of the module.
        log: File that the output is appended to.
        module: Module to run.
        fresh: Whether the process imports everything again.
        environment: Additional environment variables.
        directory: Directory that the process works in; None: that of this one.
    """

    def __init__(
        self,
        arguments,
        log,
        *,
        module="trainers.algorithmic",
        fresh=False,
        environment=None,
        directory=None,
    ):
        self.fresh = fresh
        self.log = pathlib.Path(log)
        self.log.touch()
        # The fork would write buffered output a second time.
        sys.stdout.flush()
        self.pid = os.fork()
        self._status = None
        if not self.pid:
            try:
                with self.log.open("a") as output, open(os.devnull) as nothing:
                    os.dup2(nothing.fileno(), 0)
                    os.dup2(output.fileno(), 1)
                    os.dup2(output.fileno(), 2)
                os.environ.update(environment or {})
                if directory:
                    os.chdir(directory)
                os._exit(_run_module(module, arguments, fresh))
            finally:
                os._exit(70)

    def wait(self, seconds=PATIENCE):
        """Waits for the end of the process.

        Returns:
            The exit status, negative for a signal; `None` if the process
            still runs after these seconds.
        """
        until = time.monotonic() + seconds
        while self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() >= until:
                break
            else:
                time.sleep(0.002)
        return self._status

    def send(self, number):
        """Sends a signal, unless the process has ended."""
        if self.wait(0) is None:
            os.kill(self.pid, number)

    def end(self):
        """Kills the process if it still runs, and waits for its end."""
        self.send(signal.SIGKILL)
        self.wait()

    @property
    def output(self):
        """Text that the process has written."""
        return self.log.read_text()


def find_errors(output):
    """Finds the error messages in the output of a process.

    A traceback counts as one, so that the only message is never beside one.
    """
    return re.findall("^(?:error: |Traceback ).*", output, re.MULTILINE)


def _run_module(module, arguments, fresh):
    # A background job of a shell ignores SIGINT unless told otherwise. A fork
    # has imported the trainers, which handle SIGINT from then on.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(
        signal.SIGINT, signal.default_int_handler if fresh else end_at_once
    )
    # A worker that has lost another worker restarts itself by this command.
    sys.orig_argv = [sys.executable, "-m", module, *arguments]
    if fresh:
        os.environ["PYTHONUNBUFFERED"] = "1"
        # Importing the trainers above has set this variable.
        os.environ.pop("TF_CPP_MIN_LOG_LEVEL", None)
        os.execv(sys.executable, sys.orig_argv)
    sys.stdout.reconfigure(line_buffering=True)
    sys.argv = [module, *arguments]
    sys.modules.pop(module, None)
    try:
        runpy.run_module(module, run_name="__main__")
        status = 0
    except SystemExit as error:
        status = error.code or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    return status
