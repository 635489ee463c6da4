"""Stops a run on a signal, after its state is saved."""

import os
import signal
import threading

from trainers.errors import StoppedError

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopRequest:
    """Context manager that remembers SIGTERM and SIGINT.

    The run continues to a point where its state can be saved, and calls
    `check` there. A second Ctrl-C ends the program at once.

    Args:
        strategy: The `Strategy`. A signal to one worker stops all of them.
    """

    def __init__(self, strategy):
        self._strategy = strategy
        self._signal = None
        self._before = {}

    def __enter__(self):
        # Python hands signals to the main thread alone.
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                self._before[number] = signal.signal(number, self._remember)
        return self

    def __exit__(self, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _remember(self, number, frame):
        if self._signal == signal.SIGINT == number:
            raise KeyboardInterrupt
        self._signal = number
        name = signal.Signals(number).name
        # Not print: the signal may have interrupted one.
        os.write(1, f"\n{name}: stopping after these steps\n".encode())

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
