"""Imports benchmarks, which define flags of the same names."""

import contextlib
import importlib
import sys

from absl import flags


@contextlib.contextmanager
def imported(name):
    """Context with a benchmark, newly imported, and its flags."""
    for known in [*sys.modules]:
        if known.startswith("benchmarks."):
            del sys.modules[known]
    before = set(flags.FLAGS)
    try:
        yield importlib.import_module(f"benchmarks.{name}")
    finally:
        for flag in set(flags.FLAGS) - before:
            delattr(flags.FLAGS, flag)


def load(name):
    """Returns a benchmark whose functions need no flags."""
    with imported(name) as module:
        return module
