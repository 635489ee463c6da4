import numpy as np
import pytest

from keras_lengen.layers import RoPE, WarpedPositions, WarpedRoPE
from tests.keras_lengen.layers.encodings.table import TOKENS, random_inputs

QUERY, KEY = random_inputs("rotation")


def test_long_sequences_turn_no_further_than_trained_ones():
    turned = WarpedRoPE(train_length=3, layout="halves")(QUERY, KEY)
    positions = np.arange(TOKENS, dtype="float32") * 3 / TOKENS
    expected = RoPE(layout="halves")(QUERY, KEY, positions=positions)
    for one, other in zip(turned, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("training", [True, False])
def test_it_is_the_encoding_with_its_sampler(training):
    arguments = {
        "train_length": 20,
        "head_fraction": 0.5,
        "tail_fraction": 0.5,
        "head_scales": (0.3,),
        "skew": "beta",
        "seed": 1,
    }
    form = WarpedRoPE(rotary_fraction=0.5, **arguments)
    plain = RoPE(rotary_fraction=0.5, sampler=WarpedPositions(**arguments))
    encoded = np.asarray(form(QUERY, training=training))
    np.testing.assert_array_equal(encoded, plain(QUERY, training=training))
    ordinal = np.allclose(encoded, RoPE(rotary_fraction=0.5)(QUERY), atol=1e-3)
    assert ordinal != training
