"""Models that generate with each kind of attention."""

import numpy as np
import pytest

from keras_lengen.layers import ATTENTIONS, ALiBi, HardALiBi, NTKRoPE, RoPE
from tests.keras_lengen.layers.encodings.table import make
from tests.keras_lengen.models.small import (
    assert_generation_is_the_full_pass,
    decoder,
    with_random_weights,
)

WINDOW = {"sliding_window": 3, "sink_tokens": 1, "num_layers": 2}
OPTIONS = {
    "window": {"encoding": RoPE(), **WINDOW},
    "window of all keys": {"encoding": make("CoPE"), **WINDOW},
    "window and length": {
        "encoding": NTKRoPE(scaling_factor=2, original_length=6),
        **WINDOW,
    },
    "log length": {"encoding": HardALiBi(), "score_factor": "log_length"},
    "adaptive": {"encoding": ALiBi(), "score_factor": "adaptive", **WINDOW},
    "trained length": {
        "encoding": RoPE(),
        "train_length": 3,
        "use_sinks": True,
        "use_query_key_norm": True,
        "logit_soft_cap": 0.7,
    },
    "entmax": {"encoding": RoPE(), "use_entmax": True},
    **{
        name: {"attention": kind, "num_key_value_heads": 1}
        for name, kind in ATTENTIONS.items()
    },
}
IDS = np.random.default_rng(0).integers(0, 3, (2, 7))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[]
            if name in ("window", "adaptive", "PaTHAttention")
            else [pytest.mark.product],
        )
        for name in OPTIONS
    ],
)
def test_new_tokens_have_the_logits_of_the_full_pass(name):
    model = with_random_weights(decoder(**OPTIONS[name]))
    assert_generation_is_the_full_pass(model, IDS, np.array([3, 7]))


def test_generation_keeps_a_short_cache():
    model = decoder(RoPE(), sliding_window=3, sink_tokens=1)
    ((key, value),) = (block["attention"] for block in model.make_cache(2, 100))
    assert key.shape[1] == value.shape[1] == 4
