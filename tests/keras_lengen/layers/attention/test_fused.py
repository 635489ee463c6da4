"""When attention is fused, and that results stay the same."""

import importlib.util
import json

import keras
import numpy as np
import pytest

from keras_lengen.layers import ALiBi, MultiHeadAttention
from keras_lengen.layers.attention.masks import (
    join_masks,
    log_counts,
    log_visible,
)
from keras_lengen.layers.attention.windows import place_tokens, show_window
from tests.shell import run_on_jax

INPUTS = np.random.default_rng(0).normal(size=(2, 5, 12)).astype("float32")
REASONS = {
    "device": "its kernels need a TPU",
    "weights": "attention weights are to be returned",
    "mask": "there is an attention_mask",
    "length": "a soft cap is multiplied by a function of the number of keys",
    "entmax": "weights are those of entmax",
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


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("size", [None, 1, 3, 20])
@pytest.mark.parametrize("sink_tokens", [0, 2])
def test_counts_are_those_of_the_masks(causal, padded, size, sink_tokens):
    real = np.ones((2, 9), bool)
    real[1, [0, 4, 5, 8]] = False
    mask = real if padded else None
    indices = np.arange(2, 9, dtype="int32")
    window = place_tokens(indices, 9, mask, sliced=False)
    ranks = window.ranks, window.key_ranks
    shown = None
    if size is not None:
        shown = show_window(ranks, size, sink_tokens, causal=causal)
    joined = join_masks(None, mask, indices if causal else None, 9, shown)
    expected = log_visible(np.zeros((2, 1, 7, 9), "float32"), joined)
    counts = log_counts(
        *(indices, 9, mask, None if size is None else window.ranks),
        size=size,
        sink_tokens=sink_tokens,
        causal=causal,
    )
    shape = (2, 7)
    expected = np.broadcast_to(expected, (2, 1, 7, 1))[:, 0, :, 0]
    assert np.allclose(np.broadcast_to(counts, shape), expected)


@pytest.mark.process
def test_layers_and_models_compute_the_same_on_jax(tmp_path):
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed")
    path = tmp_path / "errors.json"
    module = "tests.keras_lengen.layers.attention.fused_layers"
    devices = "--xla_force_host_platform_device_count=2"
    run_on_jax(module, path, XLA_FLAGS=devices)
    found = json.loads(path.read_text())
    assert len(found["errors"]) == 9
    for name, error in found["errors"].items():
        assert error < 3e-6, name
    assert found["refusals"].keys() == REASONS.keys()
    for name, reason in REASONS.items():
        assert reason in found["refusals"][name]


@pytest.mark.tpu_compile
def test_the_kernels_compile_for_each_kind_of_tpu():
    pytest.importorskip("libtpu")
    module = "tests.keras_lengen.layers.attention.fused_on_tpus"
    lines = run_on_jax(module, TPU_SKIP_MDS_QUERY="1").splitlines()
    assert len(lines) == 40
    assert all(line.endswith(": 2 kernels") for line in lines)
