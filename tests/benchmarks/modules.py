"""Imports benchmarks, which define flags of the same names."""

import contextlib
import importlib
import sys

from absl import flags


@contextlib.contextmanager
def imported(name):
    """Context with a benchmark, newly imported, and its flags.

    Afterwards, other tests find the modules that they have imported.
    """
    known, before = _take_modules(), set(flags.FLAGS)
    try:
        yield importlib.import_module(f"benchmarks.{name}")
    finally:
        _take_modules()
        sys.modules.update(known)
        for flag in set(flags.FLAGS) - before:
            delattr(flags.FLAGS, flag)


def _take_modules():
    """Forgets the modules of benchmarks, and returns them, a dict."""
    names = [name for name in sys.modules if name.startswith("benchmarks.")]
    return {name: sys.modules.pop(name) for name in names}


def load(name):
    """Returns a benchmark whose functions need no flags."""
    with imported(name) as module:
        return module
