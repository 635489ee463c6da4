"""The start of a program: flags, signals, and a quiet import of its backend.

Importing this module, or `trainers`, has no effect: `begin` acts only in the
process of a program of `trainers` or `benchmarks`.
"""

# Built into Python: `signal` would be searched for, and Ctrl-C meanwhile ends
# with a traceback.
import _signal
import os
import re
import sys

ON_JAX = {"trainers.population", "benchmarks.population"}
"""Programs that compute with JAX, and need no TensorFlow."""

SPAWNED = "KERAS_LENGEN_SPAWNED"
"""Environment variable of programs, for the processes that they spawn."""

_messages = 2
"""File descriptor for the line of an interruption."""


def begin():
    """Prepares this process, if it is that of a program, for its imports."""
    if _is_program():
        os.environ[SPAWNED] = "1"
        _end_when_interrupted()
        _check_flags()
        _import_backend()
    elif "--multiprocessing-fork" in sys.orig_argv and SPAWNED in os.environ:
        # It imports the program again.
        import_tensorflow_quietly()


def _check_flags():
    """Ends the program for a wrong flag, before the backend is imported."""
    # Imports nothing but Python and absl.
    from trainers.errors import ConfigError, fail
    from trainers.options import declared, parsing

    if parsing.find_request(sys.argv) is not None:
        # `--help | head` ends quietly.
        _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
        return
    found = re.search(r" -m ?(trainers\.[\w.]+)", " ".join(sys.orig_argv))
    if found:
        try:
            declared.check(found[1], sys.argv)
        except ConfigError as error:
            fail(error, 2)


def _is_program():
    """Returns whether `python -m` is importing the package of a program."""
    # `sys.argv` does not have the program's name yet.
    words = " ".join(sys.orig_argv)
    return sys.argv[:1] == ["-m"] and any(
        f" -m{space}{package}." in words
        for space in ("", " ")
        for package in ("trainers", "benchmarks")
    )


def _end_when_interrupted():
    """Lets Ctrl-C end a program in one line while it is being imported."""

    def end(number, frame):
        os.write(_messages, b"error: stopped by SIGINT.\n")
        os._exit(128 + number)

    # A shell lets its background jobs ignore SIGINT.
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, end)


def import_tensorflow_quietly():
    """Keeps the notes of TensorFlow's start from hiding our own lines.

    Some are written before its log levels count. They appear where
    TF_CPP_MIN_LOG_LEVEL is set to less than 3.
    """
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3") != "3":
        return
    global _messages
    stderr, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    _messages = stderr
    os.dup2(null, 2)
    try:
        import tensorflow  # noqa: F401
    finally:
        os.dup2(stderr, 2)
        _messages = 2
        os.close(stderr)
        os.close(null)


def _import_backend():
    """Ends the program if Keras is set to a backend that cannot train."""
    is_on_jax = not ON_JAX.isdisjoint(sys.orig_argv)
    if is_on_jax:
        os.environ.setdefault("KERAS_BACKEND", "jax")
    chosen = os.environ.get("KERAS_BACKEND") or "the backend in keras.json"
    try:
        try:
            import_tensorflow_quietly()
        except ModuleNotFoundError:
            if not is_on_jax:
                raise
        import keras

        chosen = keras.backend.backend()
        if chosen in ("tensorflow", "jax"):
            return
        reason = "but trainers run on TensorFlow and JAX"
    except (ImportError, ValueError) as error:
        reason = f"which cannot be imported ({error})"
    print(
        f"error: Keras is set to {chosen}, {reason}: set KERAS_BACKEND to "
        "tensorflow or jax.",
        file=sys.stderr,
    )
    sys.exit(2)
