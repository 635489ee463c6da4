"""The tests of `Retrofitted` on other backends, with other KerasHubs."""

import importlib.util
import os
import subprocess
import sys

import pytest

from tests.checkout import ROOT
from tests.shell import run_python

pytest.importorskip("keras_hub")
FILE = "tests/keras_lengen/retrofit/test_retrofitted.py"
# Exactness, its undoing and generation, of both kinds of seams.
NARROW = [
    *("ordinal_positions_change_nothing[Llama]", "restore[GPT2]"),
    *("restore[Llama]", "ordinal_positions_change_nothing[GPT2]"),
    "cached_steps_compute_what_one_pass_computes[Llama-YaRN]",
    "cached_steps_compute_what_one_pass_computes[GPT2-LearnedEncoding]",
]


def run_tests(*arguments, **variables):
    done = run_python(
        *("-m", "pytest", "-q", "-n", "0", "-m", "product and not slow"),
        *arguments,
        **variables,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return done.stdout


@pytest.mark.process
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_backends(backend):
    # Not imported: PyTorch beside TensorFlow ends some processes.
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    output = run_tests(
        *(f"{FILE}::test_{name}" for name in NARROW),
        KERAS_BACKEND=backend,
        JAX_PLATFORMS="cpu",
    )
    assert f"{len(NARROW)} passed" in output


@pytest.mark.slow
@pytest.mark.parametrize("version", ["0.31.0"])
def test_versions_of_keras_hub(version, tmp_path):
    target = str(tmp_path)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    installed = subprocess.run(
        [*pip, "--target", target, f"keras-hub=={version}"],
        capture_output=True,
        text=True,
    )
    if installed.returncode:
        pytest.skip(f"pip cannot install it: {installed.stderr[-300:]}")
    paths = os.pathsep.join([target, str(ROOT)])
    found = run_python(
        "-c",
        "import keras_hub; print(keras_hub.__version__)",
        PYTHONPATH=paths,
    )
    assert found.stdout == f"{version}\n", found.stderr
    run_tests(FILE, PYTHONPATH=paths)
