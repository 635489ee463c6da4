"""Stops a run on a signal, after its state is saved."""

import contextlib
import os
import signal
import sys
import threading

from trainers.errors import StoppedError

SIGNALS = (signal.SIGTERM, signal.SIGINT)

_received = None
"""The signal that `raise_stopped` handled last, or `None`."""


def end_at_once(number, frame):
    """Handles a signal while nothing runs that could be lost.

    Raises no exception: some imports would swallow it.
    """
    name = signal.Signals(number).name
    os.write(2, f"error: stopped by {name}.\n".encode())
    os._exit(128 + number)


def raise_stopped(number, frame):
    """Handles a signal while a program runs but does not train.

    Libraries may swallow the error: the next `StopRequest` or
    `check_received` raises it again.
    """
    global _received
    _received = number
    raise StoppedError(number)


def check_received():
    """Raises `StoppedError` if `raise_stopped` was called and nobody ended."""
    if _received is not None:
        raise StoppedError(_received)


@contextlib.contextmanager
def destructors_silenced():
    """Context in which Python does not report what `check_received` will raise.

    Python swallows an error in a destructor, and prints its traceback.
    """
    before = sys.unraisablehook

    def report(unraisable):
        if not isinstance(unraisable.exc_value, StoppedError):
            before(unraisable)

    sys.unraisablehook = report
    try:
        yield
    finally:
        sys.unraisablehook = before


def handle_signals(handler):
    """Sets the handler of SIGTERM and SIGINT, except of those ignored.

    A shell lets its background jobs ignore SIGINT. Signals received before are
    forgotten.
    """
    global _received
    _received = None
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


class StopRequest:
    """Context manager that remembers SIGTERM and SIGINT.

    The run continues to a point where its state can be saved, and calls
    `check` there; so does the end of the context. A second Ctrl-C ends the
    program at once.

    Args:
        strategy: The `Strategy`. A signal to one worker stops all of them.
    """

    def __init__(self, strategy):
        self._strategy = strategy
        self._signal = None
        self._at_once = False
        self._before = {}

    def __enter__(self):
        # Python hands signals to the main thread alone.
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                self._before[number] = signal.signal(number, self._remember)
        self._signal = self._signal or _received
        return self

    def __exit__(self, failed, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler)
        # A signal since the last check must not be lost: there may be another
        # model to train.
        if failed is None:
            self.check()

    def _remember(self, number, frame):
        if self._signal == signal.SIGINT == number:
            raise KeyboardInterrupt
        self._signal = number
        if self._at_once:
            raise StoppedError(number)
        name = signal.Signals(number).name
        # Not print: the signal may have interrupted one.
        os.write(1, f"\n{name}: stopping after these steps\n".encode())

    @contextlib.contextmanager
    def at_once(self):
        """Lets a signal raise `StoppedError` while there is nothing to save."""
        self._at_once = True
        try:
            if self._signal is not None:
                raise StoppedError(self._signal)
            yield
        finally:
            self._at_once = False

    def check(self, before_stopping=lambda: None):
        """Raises `StoppedError` if any worker was asked to stop.

        All workers must call it at the same time.

        Args:
            before_stopping: Called before the error is raised, to save the
                state.
        """
        if self._strategy.on_any_worker(self._signal is not None):
            before_stopping()
            raise StoppedError(self._signal or signal.SIGTERM)
