"""Runs the commands of notebooks, and reads their results."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
"""Directory of the checkout, in which commands run."""

SMOKE = os.environ.get("KERAS_LENGEN_SMOKE") == "1"
"""Whether models train for three steps only, to check that a notebook runs."""

RUNS = os.path.abspath(
    os.environ.get(
        "KERAS_LENGEN_RUNS",
        tempfile.mkdtemp() if SMOKE else ROOT / "runs" / "colab",
    )
)
"""Directory for the working directories of runs."""


def run(command):
    """Runs a module of the checkout, as `python -m` does, and shows its output.

    A trainer lists its flags first, one on each line. These lines are left out:
    the flags that a notebook sets are in the command, which is shown, and all
    of them are in the working directory of the run.

    Args:
        command: str. The module and its flags, as in a terminal.

    Raises:
        RuntimeError: If the command fails.
    """
    run_and_read(command)


def run_and_read(command):
    """Runs a module as `run` does, and returns the last line that it shows."""
    print(f"$ python -m {command}", flush=True)
    last = ""
    with subprocess.Popen(
        [sys.executable, "-u", "-m", *shlex.split(command)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            for line in process.stdout:
                if not re.match(r"  \w+ = ", line):
                    print(line, end="", flush=True)
                    last = line
        except KeyboardInterrupt:
            # A trainer saves its state and resumes when the cell runs again.
            process.terminate()
            raise
    if process.returncode:
        raise RuntimeError(f"exit status {process.returncode}, see above.")
    return last.rstrip("\n")


def read_results(workdir):
    """Returns the results of a run that has finished, a dict."""
    return json.loads(pathlib.Path(workdir, "results.json").read_text())
