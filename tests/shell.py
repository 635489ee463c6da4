"""Runs commands, and Python without what imports here have set."""

import os
import pathlib
import subprocess
import sys
import time

from tests.checkout import ROOT

PYTHON = pathlib.Path(sys.executable).parent
"""The directory of Python, and of the programs that were installed with it."""

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


def run(*command, cwd=ROOT, status=0, env=None):
    """Runs a command, and fails if its exit status is another one.

    Returns:
        `subprocess.CompletedProcess` with its output and its errors.
    """
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=3600,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def run_python(*arguments, cwd=ROOT, status=0, **variables):
    """Runs Python, as `run` does, with more variables of the environment."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # Importing JAX sets it to 1.
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    environment.update(variables)
    command = (sys.executable, *arguments)
    return run(*command, cwd=cwd, status=status, env=environment)


def with_commands(*folders, **variables):
    """Variables of an environment in which commands of folders come first."""
    path = os.pathsep.join(map(str, (*folders, os.environ["PATH"])))
    return {**os.environ, "PATH": path, **variables}


def wait_for(condition, seconds=120):
    """Waits until a condition holds."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)


def write_command(path, script):
    """Writes a command that runs a script of Bash."""
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)


def run_on_jax(module, *arguments, **variables):
    """Runs a module on JAX; returns its output."""
    return run_python("-m", module, *arguments, **{**variables, **JAX}).stdout
