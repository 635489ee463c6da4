"""What all models have in common: arguments, inputs, layers and draws."""

import keras
import numpy as np
import pytest
from scipy.special import log_softmax

from keras_lengen.layers import (
    ALiBi,
    InterpolatedPositions,
    LearnedEncoding,
    NTKRoPE,
    RandomizedRoPE,
    RelativeEncoding,
    RoPE,
    SinusoidalEncoding,
    XPos,
)
from tests.keras_lengen.models import small
from tests.refusals import refuses

IDS = small.token_ids()


@pytest.mark.parametrize(
    "encoding",
    [
        NTKRoPE(scaling_factor=2.0, original_length=4),
        RoPE(sampler=InterpolatedPositions(train_length=4)),
    ],
    ids=lambda encoding: type(encoding).__name__,
)
def test_each_sequence_has_its_reference_length(encoding):
    model = small.decoder(encoding, embedding_scale=48.0)

    def logits(length, tokens=6):
        batch = {"token_ids": IDS[:, :tokens], "reference_length": length}
        return np.asarray(model(batch))

    short, long = logits(8), logits(64)
    assert not np.allclose(short, long, atol=1e-4)
    both = logits(np.array([8, 64]))
    np.testing.assert_allclose(both, [short[0], long[1]], atol=1e-5)
    # Logits stay when the sequence grows.
    np.testing.assert_allclose(logits(8, 4), short[:, :4], atol=1e-5)


@pytest.mark.parametrize(
    ("encoding", "copies"),
    [
        (RelativeEncoding(), 3),
        (LearnedEncoding(max_position=9), 1),
        (RandomizedRoPE(), 1),
        (None, 1),
    ],
    ids=["relative", "learned", "randomized", "none"],
)
def test_the_encoding_is_a_template(encoding, copies):
    models = [small.encoder(encoding, num_layers=3) for _ in "12"]
    used = [
        {
            id(layer)
            for layer in (
                model.encoding,
                *(block.attention_layer.encoding for block in model.blocks),
            )
            if type(layer) is type(model.encoding)
        }
        for model in models
    ]
    assert not used[0] & used[1]
    assert id(encoding) not in used[0] | used[1]
    assert [len(layers) for layers in used] == [copies, copies]
    weights = [{id(weight) for weight in model.weights} for model in models]
    assert not weights[0] & weights[1]
    samplers = [model.encoding.sampler for model in models]
    assert samplers[0] is not samplers[1] or not samplers[0].is_random


@pytest.mark.parametrize("name", ["encoder", "encoder_decoder"])
def test_losses_leave_out_padding(name):
    model = small.MODELS[name](ALiBi(), dropout=0)
    model.compile(
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        run_eagerly=True,
    )
    lengths = np.array([3, 6])
    batch = small.inputs(model, IDS, lengths=lengths)
    if name == "encoder_decoder":
        batch["lengths"] = lengths[::-1]
    mask = np.arange(6) < lengths[:, None]
    targets = IDS % small.OUTPUT_SIZE
    chances = log_softmax(np.asarray(model(batch)), axis=-1)
    losses = -np.take_along_axis(chances, targets[..., None], -1)[..., 0]
    assert model.evaluate(batch, targets, verbose=0) == pytest.approx(
        losses[mask].mean(), rel=1e-4
    )
    np.testing.assert_array_equal(model.compute_mask(batch), mask)


CROSS = {"cross_attention": True}
UNEQUAL = {"num_layers": 2, "num_decoder_layers": 1}


@refuses(
    ("encoder", {"num_heads": 3}, "num_heads=3 does not divide model_dim=16"),
    ("encoder", {"tie_embeddings": True}, "must be vocabulary_size=7; got 3"),
    (
        "decoder",
        {**CROSS, "cross_encoding": SinusoidalEncoding()},
        "SinusoidalEncoding .* does nothing in cross",
    ),
    (
        "decoder",
        {**CROSS, "cross_encoding": XPos()},
        "XPos .* cross attention sees all",
    ),
    ("decoder", {"cross_encoding": ALiBi()}, "ALiBi .* set cross_attention"),
    ("encoder_decoder", {"encoding": XPos()}, "in an encoder, tokens attend"),
    (
        "decoder",
        {"encoding": [RoPE()], "num_layers": 2},
        "one entry for each of the 2 layers; got 1",
    ),
    ("decoder", {"encoding": [RoPE]}, r"encoding must be .* class RoPE: call"),
    ("decoder", {"encoding": lambda n: n}, r"encoding must be .*; got \[0\]"),
    (
        "decoder",
        {"encoding": [None, SinusoidalEncoding()], "num_layers": 2},
        "encoding of layer 1 is a SinusoidalEncoding, which is added to",
    ),
    (
        "encoder",
        {"encoding": [None, XPos()], "num_layers": 2},
        "encoding=XPos is for causal attention",
    ),
    (
        "encoder_decoder",
        {"encoding": lambda n: RoPE(), **UNEQUAL},
        "as many layers in the decoder as in the encoder; got 1 and 2",
    ),
    (
        "decoder",
        {"attention": small.recipe(num_heads=2)},
        "attention must not have num_heads, which is an argument of the block",
    ),
)
def test_wrong_arguments_raise(name, changes):
    small.MODELS[name](**changes)


@pytest.mark.parametrize("name", [*small.MODELS, "features"])
def test_keras_calls_it(name):
    """In a functional model, to predict, and for the shape of its outputs."""
    changes = {"output_size": None} if name == "features" else {}
    model = small.MODELS.get(name, small.encoder)(ALiBi(), **changes)
    batch = small.inputs(model, IDS, lengths=np.array([4, 6]))
    symbols = {
        key: keras.Input(value.shape[1:] and (None,), dtype="int32", name=key)
        for key, value in batch.items()
    }
    outer = keras.Model(symbols, model(symbols))
    expected = model(batch)
    shapes = {key: value.shape for key, value in batch.items()}
    assert model.compute_output_shape(shapes) == expected.shape
    assert outer.output.shape == (None, None, expected.shape[-1])
    np.testing.assert_allclose(outer(batch), expected, atol=1e-6)
    if name == "encoder":
        np.testing.assert_allclose(
            model.predict(batch, verbose=0), expected, atol=1e-5
        )
