import keras
import numpy as np
import pytest
from keras import ops

from keras_lengen.analysis import block_activations
from keras_lengen.layers import RandomizedRoPE, RoPE
from keras_lengen.models import TransformerDecoder, TransformerEncoder

SIZES = {
    "vocabulary_size": 5,
    "num_layers": 2,
    "num_heads": 2,
    "model_dim": 8,
}


def draw_tokens(*shape):
    return np.random.default_rng(0).integers(0, 5, shape).astype("int32")


def test_the_head_maps_the_last_activations_to_the_outputs():
    model = TransformerEncoder(output_size=3, encoding=RoPE(), **SIZES)
    tokens = draw_tokens(2, 6)
    outputs = ops.convert_to_numpy(model(tokens))
    found = block_activations(model, tokens)
    first, last = found.values()
    assert [path.rpartition("/")[2] for path in found] == ["block_0", "block_1"]
    assert first.shape == last.shape == (2, 6, 8)
    assert not np.allclose(first, last)
    again = ops.convert_to_numpy(model.logits(last))
    np.testing.assert_allclose(again, outputs, atol=1e-5)
    # The model is as before.
    np.testing.assert_allclose(
        ops.convert_to_numpy(model(tokens)), outputs, atol=1e-6
    )


def test_a_causal_model_in_low_precision():
    model = TransformerDecoder(
        output_size=5,
        encoding=RandomizedRoPE(max_position=32, evaluation="even"),
        dtype="mixed_bfloat16",
        **SIZES,
    )
    tokens = draw_tokens(1, 6)
    found = block_activations(model, tokens)
    assert {values.dtype for values in found.values()} == {np.dtype("float32")}
    other = tokens.copy()
    other[0, -1] = (other[0, -1] + 1) % 5
    changed = block_activations(model, other)
    for values, others in zip(found.values(), changed.values(), strict=True):
        np.testing.assert_array_equal(values[:, :-1], others[:, :-1])
        assert not np.array_equal(values[:, -1], others[:, -1])


def test_mistakes():
    with pytest.raises(ValueError, match="model"):
        block_activations(None, draw_tokens(1, 3))
    plain = keras.Sequential([keras.layers.Dense(2)])
    with pytest.raises(ValueError, match="must have TransformerBlock layers"):
        block_activations(plain, np.ones((1, 3)))
