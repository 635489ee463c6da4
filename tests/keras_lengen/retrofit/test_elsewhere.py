"""The tests of `Retrofitted` on other backends."""

import importlib.util

import pytest

from tests.shell import run_python

pytest.importorskip("keras_hub")
FILE = "tests/keras_lengen/retrofit/test_retrofitted.py"
# Exactness, its undoing and generation, of both kinds of seams.
NARROW = [
    *("ordinal_positions_change_nothing[Llama]", "restore[GPT2]"),
    *("restore[Llama]", "ordinal_positions_change_nothing[GPT2]"),
    "cached_steps_compute_what_one_pass_computes[Llama-YaRN-NoneType]",
    "cached_steps_compute_what_one_pass_computes[GPT2-LearnedEncoding-"
    "RandomizedPositions]",
]


@pytest.mark.process
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_backends(backend):
    # Not imported: PyTorch beside TensorFlow ends some processes.
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    done = run_python(
        *("-m", "pytest", "-q", "-n", "0", "-m", "product and not slow"),
        *(f"{FILE}::test_{name}" for name in NARROW),
        KERAS_BACKEND=backend,
        JAX_PLATFORMS="cpu",
    )
    assert f"{len(NARROW)} passed" in done.stdout, done.stdout[-3000:]
