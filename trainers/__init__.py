"""Programs that train: run them as `python -m trainers.<name>`."""

import os
import sys

EXPERIMENTS = {"algorithmic": "trainers.algorithmic"}
"""The modules that have an `EXPERIMENT`, by its name."""


def _import_tensorflow_quietly():
    """Keeps the notes of TensorFlow's start from hiding our own lines.

    Some are written before its log levels count. They appear where
    TF_CPP_MIN_LOG_LEVEL is set to less than 3.
    """
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3") != "3":
        return
    stderr, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        import tensorflow  # noqa: F401
    finally:
        os.dup2(stderr, 2)
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


_import_backend()
