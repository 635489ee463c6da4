"""What `flash_attention=True` hands to Keras, and what it refuses."""

import numpy as np
import pytest
from keras import ops

from keras_lengen.layers import (
    ALiBi,
    ForgettingAttention,
    MultiHeadAttention,
    PoPE,
    RoPE,
)
from tests.refusals import refuses

RANDOM = np.random.default_rng(4)
X = RANDOM.normal(size=(2, 6, 8)).astype("float32")
OTHER = RANDOM.normal(size=(2, 9, 8)).astype("float32")


@pytest.fixture
def calls(monkeypatch):
    """Has Keras compute flash attention without it, and lists the calls."""
    found, attend = [], ops.dot_product_attention

    def record(*inputs, flash_attention, **arguments):
        assert flash_attention is True
        found.append(arguments)
        return attend(*inputs, flash_attention=False, **arguments)

    monkeypatch.setattr(ops, "dot_product_attention", record)
    return found


MASK = np.tri(6, dtype=bool) | (np.arange(6) == 4)


@pytest.mark.parametrize(
    ("options", "inputs", "arguments", "causal"),
    [
        ({}, (X, X), {"use_causal_mask": True}, True),
        ({}, (X, OTHER), {"use_causal_mask": True}, False),
        ({}, (X, X), {"attention_mask": MASK}, False),
        (
            {},
            (X, X),
            {"use_causal_mask": True, "value_mask": X[..., 0] > -1},
            False,
        ),
        ({"sliding_window": 2}, (X, X), {"use_causal_mask": True}, False),
        ({"encoding": RoPE(), "scale_scores": False}, (X, X), {}, False),
        ({"score_factor": "head", "chunk_size": 2}, (X, X), {}, False),
    ],
)
def test_results_are_those_without_it(
    options, inputs, arguments, causal, calls
):
    flash, plain = (
        MultiHeadAttention(2, 4, flash_attention=wanted, **options)
        for wanted in (True, None)
    )
    for layer in (flash, plain):
        layer.build(*(each.shape for each in inputs))
    flash.set_weights([RANDOM.normal(size=w.shape) for w in flash.weights])
    plain.set_weights(flash.get_weights())
    expected = plain(*inputs, **arguments)
    assert not calls
    np.testing.assert_allclose(flash(*inputs, **arguments), expected, atol=1e-4)
    (call,) = calls
    assert call["is_causal"] is causal


@refuses(
    ({"dropout": 0.1}, "cannot compute .*dropout of attention weights"),
    ({"encoding": ALiBi()}, "cannot compute .*the bias of ALiBi"),
    ({"encoding": PoPE()}, "cannot compute .*the wider keys of PoPE"),
    ({"score_factor": "log_length"}, "cannot compute .*log_length"),
    ({"train_length": 8}, "cannot compute .*train_length"),
    ({"logit_soft_cap": 5.0}, "cannot compute .*logit_soft_cap"),
    ({"use_sinks": True}, "cannot compute .*learned sinks"),
    ({"use_entmax": True}, "cannot compute .*weights of Entmax"),
    ({"fused": True}, "cannot compute .*fused=True"),
)
def test_what_it_cannot_compute_is_refused(arguments):
    MultiHeadAttention(2, 4, flash_attention=True, **arguments)


def test_weights_are_neither_other_ones_nor_returned():
    with pytest.raises(ValueError, match="forget gates"):
        ForgettingAttention(2, 4, flash_attention=True)
    layer = MultiHeadAttention(2, 4, flash_attention=True)
    with pytest.raises(ValueError, match="does not return attention scores"):
        layer(X, X, return_attention_scores=True)
