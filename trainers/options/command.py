"""The command line of a program: flags, errors, exit statuses."""

import contextlib
import os
import re
import signal
import sys
import time
import typing

from absl import logging

from trainers.devices.interruption import (
    check_received,
    destructors_silenced,
    end_at_once,
    handle_signals,
    raise_stopped,
)
from trainers.errors import (
    ConfigError,
    StoppedError,
    TrainingError,
    WorkerLostError,
    fail,
)
from trainers.options.fields import resolve
from trainers.options.help import make_help
from trainers.options.option import options
from trainers.options.parsing import check_operands, find_request, parse

MAX_RESTARTS = 100
"""Largest number of times that a worker restarts for a lost one."""

_RESTARTS = "KERAS_LENGEN_RESTARTS"


def run(config_class, presets, main, operands=""):
    """Parses the flags, calls `main` and turns errors into statuses.

    Args:
        config_class: Class with flags; each field becomes one.
        presets: Dict from the name of a preset to the fields it sets.
        main: Called with the configuration and the operands.
        operands: str. Name of the argument beside the flags; with `...` at
            its end, there are one or more; in brackets, there may be none;
            empty: there is none.
    """
    # Names of files may have characters that the terminal cannot show.
    sys.stdout.reconfigure(errors="backslashreplace")

    # TensorFlow warns of many programs, which are intended, one for each
    # bucket, and reports every file it saves.
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None:
        tensorflow.get_logger().setLevel("ERROR")
    logging.set_verbosity(logging.WARNING)

    def start(argv):
        name = find_request(argv)
        if name is not None:
            about = sys.modules["__main__"].__doc__ or ""
            print(make_help(config_class, presets, name, about))
            return
        kinds = typing.get_type_hints(config_class)
        given, others = parse(
            {n: kinds[n] for n in options(config_class)}, argv
        )
        check_operands(others, operands)
        main(resolve(config_class, presets, given), *others)
        check_received()

    with errors_as_statuses(), destructors_silenced():
        try:
            handle_signals(raise_stopped)
            start(sys.argv)
            # What cannot be written is found here, and not at the very end.
            sys.stdout.flush()
        finally:
            handle_signals(end_at_once)


@contextlib.contextmanager
def errors_as_statuses():
    """Ends the program with one line and a status for each kind of error."""
    try:
        yield
    except ConfigError as error:
        fail(error, 2)
    except TrainingError as error:
        fail(error, 1)
    except BrokenPipeError:
        # Python would try again to write what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        fail("standard output was closed before the end.", 1)
    except WorkerLostError as error:
        _start_again(error)
    except StoppedError as error:
        name = signal.Signals(error.number).name
        fail(
            f"stopped by {name}: run the same command again to resume.",
            128 + error.number,
        )
    except KeyboardInterrupt:
        fail(
            "interrupted: run the same command again to resume from the last "
            "checkpoint.",
            128 + signal.SIGINT,
        )
    except Exception as error:
        # In a pipeline, TensorFlow wraps an error of Python code in its own,
        # which is not imported here: some programs need no TensorFlow.
        text = getattr(error, "message", "")
        of_data = re.search("CorpusError: (.*)", str(text))
        if not of_data:
            raise
        fail(f"{of_data[1]} Then run the same command again to resume.", 1)


def _start_again(error):
    """Replaces this process, whose collective operations are broken."""
    restarts = int(os.environ.get(_RESTARTS, 0)) + 1
    if restarts > MAX_RESTARTS:
        fail(f"gave up after {MAX_RESTARTS} restarts: {error}", 1)
    os.environ[_RESTARTS] = str(restarts)
    print(
        "another worker was lost: resuming from the last checkpoint when all "
        f"workers are back (restart {restarts})",
        flush=True,
    )
    # The others need time to notice, too.
    time.sleep(1)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
