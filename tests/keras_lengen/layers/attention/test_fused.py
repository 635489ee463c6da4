"""Fused attention equals attention with all scores in memory."""

import json

import numpy as np
import pytest

from keras_lengen.layers import (
    ENCODINGS,
    ALiBi,
    MultiHeadAttention,
    ShawEncoding,
)
from keras_lengen.layers.attention.visibility import Reach, find_visible
from keras_lengen.layers.attention.windows import place_tokens
from keras_lengen.layers.encodings.bias import BiasEncoding
from tests.shell import run_on_jax

INPUTS = np.random.default_rng(0).normal(size=(2, 5, 12)).astype("float32")
REASONS = {
    "device": "its kernels need a TPU",
    "weights": "attention weights are to be returned",
    "mask": "there is an attention_mask",
    "length": "a soft cap is multiplied by a function of the number of keys",
    "sampled": "RandomizedALiBi reads sampled distances from a table",
}


def test_other_backends_refuse_it():
    layer = MultiHeadAttention(2, 4, encoding=ALiBi(), fused=True)
    with pytest.raises(ValueError, match="kernels need JAX, not tensorflow"):
        layer(INPUTS, INPUTS)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(
    ("padded", "size", "sink_tokens"),
    [(False, None, 0), (True, None, 0), (False, 3, 2), (True, 3, 2)],
)
def test_counts_are_those_of_the_masks(causal, padded, size, sink_tokens):
    real = np.ones((2, 9), bool)
    real[1, [0, 4, 5, 8]] = False
    mask = real if padded else None
    indices = np.arange(2, 9, dtype="int32")
    window = place_tokens(indices, 9, mask, sliced=False)
    ranks = None if size is None else (window.ranks, window.key_ranks)
    reach = Reach(causal, size, sink_tokens)
    visible = find_visible(reach, indices, 9, ranks, padding=mask)
    seen = visible.mask()
    seen = np.broadcast_to(True if seen is None else seen, (2, 1, 7, 9))
    assert len(visible.count().shape) == 4
    counts = np.broadcast_to(visible.count(), (2, 1, 7, 1))
    np.testing.assert_array_equal(counts[..., 0], np.maximum(seen.sum(-1), 1))


@pytest.mark.process
def test_kernels_and_layers_equal_the_definition(tmp_path):
    pytest.importorskip("jax")
    path = tmp_path / "errors.json"
    module = "tests.keras_lengen.layers.attention.fused_outputs"
    # Two devices, which share a batch.
    devices = "--xla_force_host_platform_device_count=2"
    run_on_jax(module, path, XLA_FLAGS=devices)
    found = json.loads(path.read_text())
    for name, errors in found["encodings"].items():
        assert max(errors) < 5e-6, name
    for name, error in found["layers"].items():
        # The rounding of float32, in sums of up to 1,100 terms.
        assert error < 5e-6, name
    assert found["dropout"]["weights"] < 3e-6
    assert abs(found["dropout"]["share"]) < 0.06
    assert found["dropout"]["slope"] < 0.03
    assert found["refusals"].keys() == REASONS.keys()
    for name, reason in REASONS.items():
        assert reason in found["refusals"][name]
    # Every bias of two positions is compared.
    fusible = {
        cls.bias_of_pair
        for cls in ENCODINGS.values()
        if issubclass(cls, BiasEncoding)
    } - {BiasEncoding.bias_of_pair}
    compared = [ENCODINGS[name] for name in found["encodings"]]
    assert fusible == {cls.bias_of_pair for cls in compared}
    assert {cls().find_pair_obstacle() for cls in compared} == {None}


def test_other_encodings_say_why_not():
    for name in ("CoPE", "DAPE", "RelativeEncoding"):
        assert name in ENCODINGS[name]().find_pair_obstacle()
    with pytest.raises(NotImplementedError, match="ShawEncoding depends on"):
        ShawEncoding().make_pair_parameters(2)
