"""When attention is fused, and that results stay the same."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_lengen.layers import ALiBi, MultiHeadAttention

ROOT = pathlib.Path(__file__).parents[4]
INPUTS = np.random.default_rng(0).normal(size=(2, 5, 12)).astype("float32")
REASONS = {
    "device": "its kernels need a TPU",
    "weights": "attention weights are to be returned",
    "mask": "there is an attention_mask",
    "length": 'score_factor is "log_length"',
    "sampled": "RandomizedALiBi reads sampled distances from a table",
}


def test_other_backends_refuse_it():
    layer = MultiHeadAttention(2, 4, encoding=ALiBi(), fused=True)
    with pytest.raises(ValueError, match="kernels need JAX, not tensorflow"):
        layer(INPUTS, INPUTS)


@pytest.mark.parametrize("fused", ["auto", False])
def test_other_backends_do_not_use_it(fused):
    outputs = []
    for arguments in ({}, {"fused": fused}):
        keras.utils.set_random_seed(0)
        layer = MultiHeadAttention(2, 4, encoding=ALiBi(), **arguments)
        outputs.append(layer(INPUTS, INPUTS))
    assert np.array_equal(*outputs)


@pytest.mark.slow
def test_layers_and_models_compute_the_same_on_jax(tmp_path):
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed")
    path = tmp_path / "errors.json"
    module = "tests.keras_lengen.layers.attention.fused_layers"
    subprocess.run(
        [sys.executable, "-m", module, str(path)],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        check=True,
    )
    found = json.loads(path.read_text())
    assert len(found["errors"]) == 5
    for name, error in found["errors"].items():
        assert error < 3e-6, name
    assert found["refusals"].keys() == REASONS.keys()
    for name, reason in REASONS.items():
        assert reason in found["refusals"][name]
