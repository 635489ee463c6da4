"""Programs that train: run them as `python -m trainers.<name>`."""

import os

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


_import_tensorflow_quietly()
