"""Runs Python in a process, as a command that is given in a shell."""

import os
import subprocess
import sys

from tests.checkout import ROOT

JAX = {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
"""Variables with which Keras computes by JAX, on CPUs."""

WITHOUT_TENSORFLOW = """
import sys


class WithoutTensorFlow:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "tensorflow":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, WithoutTensorFlow)
"""
"""A program that keeps others from importing TensorFlow."""


def run_python(*arguments, cwd=ROOT, **variables):
    """Runs Python without what imports here have set.

    Args:
        *arguments: Arguments of Python, such as `"-m"` and a module.
        cwd: Directory to run in.
        **variables: Variables of the environment.

    Returns:
        `subprocess.CompletedProcess` with its output and its errors.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # Importing JAX sets it to 1.
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=3600,
    )


def write_command(path, script):
    """Writes a command that runs a script of Bash."""
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)


def run_on_jax(module, *arguments, **variables):
    """Runs a module on JAX, and fails if it does; returns its output."""
    done = run_python("-m", module, *arguments, **{**variables, **JAX})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
