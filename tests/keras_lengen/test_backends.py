"""The other backends, each in a process of its own."""

import importlib.util

import numpy as np
import pytest

from tests.keras_lengen import backend_outputs
from tests.shell import run_python

pytestmark = pytest.mark.process


def run(backend, *command, needs=()):
    """Runs a Python module on a backend; skips where packages are missing."""
    for package in (backend, *needs):
        # Not imported: PyTorch beside TensorFlow ends some processes.
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    run_python("-m", *command, KERAS_BACKEND=backend, JAX_PLATFORMS="cpu")


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_it_computes_what_tensorflow_does(backend, tmp_path):
    models = backend_outputs.models()
    paths = tmp_path / "weights.npz", tmp_path / "outputs.npz"
    np.savez(paths[0], **backend_outputs.weights_of(models))
    run(backend, backend_outputs.__name__, *paths)
    theirs = np.load(paths[1])
    ours = backend_outputs.outputs(models)
    assert set(theirs) == set(ours)
    for name, array in ours.items():
        np.testing.assert_allclose(
            theirs[name], array, rtol=1e-5, atol=1e-4, err_msg=name
        )


def test_torch_needs_no_array_of_a_tensor():
    files = ["torch_checks.py", "layers/encodings/test_angles.py"]
    paths = [f"tests/keras_lengen/{file}" for file in files]
    plugin = "tests.keras_lengen.like_cuda"
    run("torch", "pytest", "-q", "-n", "0", "-p", plugin, *paths)


ON_JAX = [
    *("checks/test_guards.py", "checks/test_inputs.py", "test_bad_inputs.py"),
    *("layers/attention/test_axes.py", "layers/test_random_layer.py"),
    *("layers/encodings/test_angles.py", "layers/encodings/test_jax_forms.py"),
    "models/test_token_choice.py",
    "models/test_base.py::test_losses_leave_out_padding",
]


def test_tests_of_all_backends_pass_on_jax():
    paths = [f"tests/keras_lengen/{file}" for file in ON_JAX]
    marks = ("-m", "not slow and not product")
    run("jax", "pytest", "-q", "-n", "0", *marks, *paths)


# Exactness, its undoing and generation, of both kinds of patches.
RETROFITTED = [
    *("ordinal_positions_change_nothing[Llama]", "restore[GPT2]"),
    *("restore[Llama]", "ordinal_positions_change_nothing[GPT2]"),
    "cached_steps_compute_what_one_pass_computes[Llama-YaRN-NoneType]",
    "cached_steps_compute_what_one_pass_computes[GPT2-LearnedEncoding-"
    "RandomizedPositions]",
]


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_other_models_are_changed(backend):
    folder = "tests/keras_lengen/retrofit"
    paths = [f"{folder}/test_retrofitted.py::test_{n}" for n in RETROFITTED]
    name = "test_without_an_encoding_nothing_changes"
    paths.append(f"{folder}/test_conversion.py::{name}")
    command = ("pytest", "-q", "-n", "0", "-m", "not slow", *paths)
    run(backend, *command, needs=["keras_hub"])
