"""The command line of a program: flags, errors, exit statuses."""

import contextlib
import dataclasses
import itertools
import os
import re
import signal
import sys
import time
import typing

from absl import app, flags, logging

from datasets.files import only_files
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
)
from trainers.options.fields import resolve
from trainers.options.help import find_request, make_help
from trainers.options.option import check_text, options

MAX_RESTARTS = 100
"""Largest number of times that a worker restarts for a lost one."""

MAX_CHARACTERS = 1000
"""Largest number of characters of an error message."""

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
    names = _define_flags(config_class)
    # Names of files may have characters that the terminal cannot show.
    sys.stdout.reconfigure(errors="backslashreplace")

    # TensorFlow warns of many programs, which are intended, one for each
    # bucket, and reports every file it saves.
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None:
        tensorflow.get_logger().setLevel("ERROR")
    logging.set_verbosity(logging.WARNING)

    def parse(argv):
        try:
            name = find_request(argv)
            if name is not None:
                about = sys.modules["__main__"].__doc__ or ""
                print(make_help(config_class, presets, name, about))
                sys.exit()
            _check_flagfiles(argv[1:])
            return flags.FLAGS(argv)
        except (ConfigError, flags.Error) as error:
            _fail(error, 2)

    def start(argv):
        _check_operands(argv[1:], operands)
        values = {name: getattr(flags.FLAGS, name) for name in names}
        given = {name: v for name, v in values.items() if v is not None}
        main(resolve(config_class, presets, given), *argv[1:])
        check_received()

    with errors_as_statuses(), destructors_silenced():
        try:
            handle_signals(raise_stopped)
            app.run(start, flags_parser=parse)
        finally:
            handle_signals(end_at_once)


def _define_flags(config_class):
    """Defines the flags of a class of configurations; returns their names."""
    types = typing.get_type_hints(config_class)
    define = {
        str: flags.DEFINE_string,
        int: flags.DEFINE_integer,
        float: flags.DEFINE_float,
    }
    fields = dataclasses.fields(config_class)
    known = options(config_class)
    for field in fields:
        # None: not given, so that a preset can tell its own defaults apart.
        define[types[field.name]](
            field.name,
            None,
            known[field.name].help,
            # A flag given twice is a mistake.
            allow_overwrite=False,
            # The name that absl knows the main program by: --help lists its
            # flags alone.
            module_name=sys.argv[0],
        )
    return [field.name for field in fields]


def _check_flagfiles(arguments, seen=()):
    """Raises `ConfigError` for a file of flags that is no text, or no file."""
    for argument, following in itertools.zip_longest(arguments, arguments[1:]):
        flag, given, path = argument.partition("=")
        path = os.path.expanduser(path if given else following or "")
        if flag not in ("--flagfile", "-flagfile") or path in ("", *seen):
            continue
        try:
            with open(path, opener=only_files) as file:
                lines = [line.strip() for line in file]
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise ConfigError(
                f"cannot read --flagfile={path}: {reason}."
            ) from None
        _check_flagfiles(lines, (*seen, path))


def _check_operands(given, operands):
    for text in given:
        check_text(operands or "an argument", text)
    if given and not operands:
        raise ConfigError(
            f"unexpected argument {given[0]!r}: flags start with --."
        )
    if operands and not given and not operands.startswith("["):
        raise ConfigError(f"{operands} is missing: see --help.")
    if len(given) > 1 and not operands.strip("[]").endswith("..."):
        raise ConfigError(f"expected one {operands}; got {' '.join(given)}.")


@contextlib.contextmanager
def errors_as_statuses():
    """Ends the program with one line and a status for each kind of error."""
    try:
        yield
    except ConfigError as error:
        _fail(error, 2)
    except TrainingError as error:
        _fail(error, 1)
    except WorkerLostError as error:
        _start_again(error)
    except StoppedError as error:
        name = signal.Signals(error.number).name
        _fail(
            f"stopped by {name}: run the same command again to resume.",
            128 + error.number,
        )
    except KeyboardInterrupt:
        _fail(
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
        _fail(f"{of_data[1]} Then run the same command again to resume.", 1)


def _start_again(error):
    """Replaces this process, whose collective operations are broken."""
    restarts = int(os.environ.get(_RESTARTS, 0)) + 1
    if restarts > MAX_RESTARTS:
        _fail(f"gave up after {MAX_RESTARTS} restarts: {error}", 1)
    os.environ[_RESTARTS] = str(restarts)
    print(
        "another worker was lost: resuming from the last checkpoint when all "
        f"workers are back (restart {restarts})",
        flush=True,
    )
    # The others need time to notice, too.
    time.sleep(1)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _fail(message, status):
    # One line, even if a value that it repeats has several.
    message = " ".join(str(message).split())
    if len(message) > MAX_CHARACTERS:
        message = f"{message[:MAX_CHARACTERS]}..."
    print(f"error: {message}", file=sys.stderr)
    sys.exit(status)
