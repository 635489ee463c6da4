"""Programs that train: run them as `python -m trainers.<name>`."""

import os
import signal
import sys

from trainers.cluster import interruption

EXPERIMENTS = {
    "algorithmic": "trainers.algorithmic",
    "enwik8": "trainers.enwik8",
    "wikitext103": "trainers.wikitext103",
}
"""The modules that have an `EXPERIMENT`, by its name."""


def _end_when_interrupted():
    """Lets Ctrl-C end a program in one line while it is being imported."""
    # Only while `python -m trainers.<name>` imports this package. A shell lets
    # its background jobs ignore SIGINT.
    if sys.argv[:1] == ["-m"] and (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):
        signal.signal(signal.SIGINT, interruption.end_at_once)


def _import_tensorflow_quietly():
    """Keeps the notes of TensorFlow's start from hiding our own lines.

    Some are written before its log levels count. They appear where
    TF_CPP_MIN_LOG_LEVEL is set to less than 3.
    """
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3") != "3":
        return
    stderr, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    interruption.messages = stderr
    os.dup2(null, 2)
    try:
        import tensorflow  # noqa: F401
    finally:
        os.dup2(stderr, 2)
        interruption.messages = 2
        os.close(stderr)
        os.close(null)


def _import_backend():
    """Ends the program if Keras is set to a backend that cannot train."""
    chosen = os.environ.get("KERAS_BACKEND") or "the backend in keras.json"
    try:
        _import_tensorflow_quietly()
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


_end_when_interrupted()
_import_backend()
