import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from tests.keras_lengen import backend_outputs

ROOT = pathlib.Path(__file__).parents[2]


def test_jax_computes_what_tensorflow_does(tmp_path):
    pytest.importorskip("jax")
    models = backend_outputs.models()
    paths = tmp_path / "weights.npz", tmp_path / "outputs.npz"
    np.savez(paths[0], **backend_outputs.weights_of(models))
    subprocess.run(
        [sys.executable, "-m", backend_outputs.__name__, *map(str, paths)],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        check=True,
    )
    theirs = np.load(paths[1])
    ours = backend_outputs.outputs(models)
    assert set(theirs) == set(ours)
    for name, array in ours.items():
        np.testing.assert_allclose(
            theirs[name], array, rtol=1e-5, atol=1e-4, err_msg=name
        )
