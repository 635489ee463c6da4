"""Importing the trainers has no effect; errors of the start are shown."""

import os

import pytest

from tests.checkout import ROOT
from tests.shell import run_python

pytestmark = pytest.mark.process

NO_EFFECT = """
import os, signal, sys
def find_handlers():
    return {number: signal.getsignal(number) for number in signal.Signals}
handlers, variables = find_handlers(), {**os.environ}
import trainers
assert find_handlers() == handlers
assert os.environ == variables
assert not {"tensorflow", "jax", "keras"} & {*sys.modules}
"""


def test_an_import_by_another_program_has_no_effect(tmp_path):
    # `python -m` imports the package of the program first. Keras cannot train
    # on this backend, but nobody asked it to.
    package = tmp_path / "other"
    package.mkdir()
    (package / "__init__.py").write_text(NO_EFFECT)
    (package / "program.py").touch()
    paths = f"{tmp_path}{os.pathsep}{ROOT}"
    variables = {"PYTHONPATH": paths, "KERAS_BACKEND": "torch"}
    assert not run_python("-m", "other.program", **variables).stderr


def test_errors_of_the_start_are_shown():
    command = ("-m", "trainers.algorithmic")
    done = run_python(*command, KERAS_BACKEND="numpy", status=2)
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: Keras is set to numpy, but trainers run on")
