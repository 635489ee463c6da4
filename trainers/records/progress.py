"""Progress of long work: one moving line on a terminal, lines in a log."""

import shutil
import sys
import time

import keras


class Progress(keras.callbacks.Callback):
    """Prints step, loss, rate and time left.

    Args:
        name: str. Name of the run.
        steps: int. Number of the last step.
        log_every: float. Seconds between lines where the output is not a
            terminal.
    """

    def __init__(self, name, *, steps, log_every=10):
        super().__init__()
        self._line = Line(log_every)
        self._name = name
        self._steps = steps

    def on_train_begin(self, logs=None):
        """Remembers the step and the time that this process starts from."""
        self._first = (logs["step"], logs["seconds"])
        if logs["step"]:
            print(f"{self._name}: resuming after step {logs['step']:.0f}")

    def on_train_batch_end(self, batch, logs=None):
        """Prints the progress so far."""
        rate = (batch - self._first[0]) / (logs["seconds"] - self._first[1])
        left = (self._steps - batch) / rate
        self._line.show(
            f"{self._name}: step {batch}/{self._steps}, "
            f"loss {logs['loss']:.4f}, {rate:.1f} steps/s, "
            f"{format_seconds(left)} left",
            last=batch == self._steps,
        )


class Line:
    """One line of output that is rewritten on a terminal.

    Args:
        log_every: float. Seconds between lines where the output is not a
            terminal.
    """

    def __init__(self, log_every=10):
        self._log_every = log_every
        self._shown = -float("inf")

    def show(self, text, *, last=False):
        """Shows the text; in a log, only if time has passed or it is last."""
        if sys.stdout.isatty():
            print(f"\r\033[K{text}", end="\n" if last else "", flush=True)
            return
        now = time.monotonic()
        if last or now - self._shown >= self._log_every:
            print(text, flush=True)
            self._shown = now


class Table:
    """Lines of output that are rewritten on a terminal.

    Attributes:
        is_shown: bool. Whether the output is a terminal; in a log, only the
            lines of `add` appear.
    """

    def __init__(self):
        self.is_shown = sys.stdout.isatty()
        self._lines = 0

    def show(self, lines):
        """Shows lines in place of those that were shown before."""
        if not self.is_shown:
            return
        size = shutil.get_terminal_size()
        # A line that wraps would be counted once.
        lines = [line[: size.columns - 1] for line in lines[: size.lines - 1]]
        self._write("".join(f"{line}\n" for line in lines))
        self._lines = len(lines)

    def add(self, text):
        """Prints a text that stays, above the lines."""
        self._write(f"{text}\n")
        self._lines = 0

    def _write(self, text):
        above = f"\033[{self._lines}F\033[J" if self._lines else ""
        print(f"{above}{text}", end="", flush=True)


def show_evaluation(line, name, problem, length, fraction):
    """Shows how far an evaluation is.

    Args:
        line: The `Line`.
        name: str. Name of the run.
        problem: The `Problem`.
        length: int. The length that is evaluated.
        fraction: float. Fraction of its batches that are done.
    """
    show_length(
        line,
        f"{name}: evaluated {problem.length_name}",
        list(map(problem.describe_length, problem.lengths)),
        problem.describe_length(length),
        fraction,
    )


def show_length(line, text, lengths, length, fraction=1):
    """Shows which length is done, or which fraction of it.

    Args:
        line: The `Line`.
        text: str. What is done.
        lengths: Sequence of all lengths, or of their names.
        length: One of them.
        fraction: float. Fraction of its batches that are done.
    """
    last = length == lengths[-1] and fraction == 1
    share = "" if fraction == 1 else f" ({fraction:.0%})"
    line.show(f"{text} {length}/{lengths[-1]}{share}", last=last)


def format_seconds(seconds):
    """Returns seconds as `h:mm:ss` or `m:ss`.

    >>> format_seconds(3723)
    '1:02:03'
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{seconds:02d}"
    return f"{minutes}:{seconds:02d}"
