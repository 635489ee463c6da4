"""What all models have in common: arguments, inputs, layers and draws."""

import keras
import numpy as np
import pytest

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
    YaRN,
)
from tests.keras_lengen.models.small import (
    MODELS,
    OUTPUT_SIZE,
    VOCABULARY_SIZE,
    Witness,
    decoder,
    encoder,
    token_ids,
)

IDS = token_ids()
SPREAD = np.array([1, 4, 5, 11, 30, 47], "int32")


@pytest.mark.parametrize("normalization", ["post", "pre", None])
def test_embeddings_are_scaled_and_end_in_the_head(normalization):
    model = encoder(SinusoidalEncoding(), normalization=normalization)
    x = model.embedding(IDS) * 4
    x = model.blocks[0](model.encoding(x))
    if normalization == "pre":
        x = model.final_norm(x)
    np.testing.assert_allclose(model(IDS), model.head(x), atol=1e-6)
    features = encoder(
        SinusoidalEncoding(), normalization=normalization, output_size=None
    )
    features.set_weights(model.get_weights()[:-2])
    np.testing.assert_allclose(features(IDS), x, atol=1e-6)


def test_encoders_see_all_tokens_and_decoders_no_later_ones():
    ids = np.tile(IDS[0], (7, 1))
    # Every token of the last sequence is changed in one of the others.
    ids[np.arange(6), np.arange(6)] = (IDS[0] + 1) % VOCABULARY_SIZE
    for make in (encoder, decoder):
        model = make(RoPE(), num_layers=2, embedding_scale=48.0)
        logits = np.asarray(model({"token_ids": ids, "positions": SPREAD}))
        change = np.abs(logits[:-1] - logits[-1]).max(axis=-1)
        seen = np.ones((6, 6), "bool")
        if make is decoder:
            seen = np.triu(seen)
        assert (change[~seen] < 1e-5).all()
        assert (change[seen] > 1e-4).all()


@pytest.mark.parametrize(
    "encoding",
    [
        NTKRoPE(scaling_factor=2.0, original_length=4),
        YaRN(scaling_factor=None, original_length=4),
        RoPE(sampler=InterpolatedPositions(train_length=4)),
    ],
    ids=lambda encoding: type(encoding).__name__,
)
def test_each_sequence_has_its_reference_length(encoding):
    model = decoder(encoding, embedding_scale=48.0)

    def logits(length, tokens=6):
        batch = {"token_ids": IDS[:, :tokens], "reference_length": length}
        return np.asarray(model(batch))

    short, long = logits(8), logits(64)
    assert not np.allclose(short, long, atol=1e-4)
    both = logits(np.array([8, 64]))
    np.testing.assert_allclose(both, [short[0], long[1]], atol=1e-5)
    # Logits stay when the sequence grows.
    np.testing.assert_allclose(logits(8, 4), short[:, :4], atol=1e-5)


@pytest.fixture
def seen(monkeypatch):
    monkeypatch.setattr(Witness, "seen", [])
    return Witness.seen


@pytest.mark.parametrize("draw", ["model", "layer"])
@pytest.mark.parametrize("make", [encoder, decoder])
def test_layers_share_a_draw_or_have_their_own(make, draw, seen):
    model = make(RandomizedRoPE(), num_layers=3, attention=Witness, draw=draw)
    seen.clear()
    model(IDS)
    different = {tuple(positions.tolist()) for positions in seen}
    assert len(seen) == 3
    assert len(different) == (1 if draw == "model" else 3)
    seen.clear()
    model({"token_ids": IDS, "positions": SPREAD})
    np.testing.assert_array_equal(seen, [SPREAD] * 3)


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
    models = [encoder(encoding, num_layers=3) for _ in "12"]
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
    assert samplers[0] is not samplers[1] or not samplers[0].draws


def test_losses_leave_out_padding():
    model = encoder(ALiBi(), dropout=0)
    model.compile(
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        run_eagerly=True,
    )
    batch = {"token_ids": IDS, "lengths": np.array([3, 6])}
    mask = np.arange(6) < batch["lengths"][:, None]
    targets = IDS % OUTPUT_SIZE
    logits = np.asarray(model(batch), "float64")
    chances = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    losses = -np.take_along_axis(chances, targets[..., None], -1)[..., 0]
    assert model.evaluate(batch, targets, verbose=0) == pytest.approx(
        losses[mask].mean(), rel=1e-4
    )


BOTH = {"token_ids": IDS, "target_ids": IDS}
WRONG_INPUTS = [
    ("encoder", {"tokens": IDS}, "the key 'tokens': did you mean token_ids"),
    (
        "encoder",
        {"lengths": IDS[:, 0]},
        "inputs must have token_ids, .* got lengths",
    ),
    ("encoder", {"token_ids": IDS, "memory": IDS}, "'memory'"),
    ("encoder", {"token_ids": IDS, "length": IDS[:, 0]}, "'length'"),
    (
        "decoder",
        {"token_ids": IDS, "lengths": 3, "padding_mask": IDS > 0},
        "at most one of lengths and padding_mask",
    ),
    (
        "encoder",
        {"token_ids": IDS, "segment_ids": IDS, "reference_length": 4},
        "at most one of segment_ids and reference_length",
    ),
    ("encoder", {"token_ids": IDS, "positions": IDS[0, :5]}, "positions"),
    (
        "decoder",
        {"token_ids": IDS, "memory": IDS},
        "must not have the key 'memory'. It may",
    ),
    ("encoder_decoder", IDS, "at least token_ids and target_ids; got .*Tens"),
    ("encoder_decoder", {"token_ids": IDS}, "target_ids, .*; got token_ids"),
    ("encoder_decoder", {"target_ids": IDS}, "target_ids, .*; got target_ids"),
    (
        "encoder_decoder",
        {**BOTH, "length": 3},
        "the key 'length': did you mean lengths",
    ),
    (
        "encoder_decoder",
        {**BOTH, "target_length": 3},
        "the key 'target_length': did you mean target_lengths",
    ),
    (
        "encoder_decoder",
        {"token_ids": keras.Input((None,), dtype="int32")},
        r"target_ids, .*; got token_ids",
    ),
    ("encoder_decoder", {**BOTH, "token_ids": IDS[:, :0]}, "at least one tok"),
    ("encoder_decoder", {**BOTH, "target_ids": IDS[:1]}, "target_ids"),
]


@pytest.mark.parametrize(("name", "batch", "message"), WRONG_INPUTS)
def test_wrong_inputs_raise(name, batch, message):
    with pytest.raises(ValueError, match=message):
        MODELS[name]()(batch)


CROSS = {"cross_attention": True}
WRONG_ARGUMENTS = [
    ("encoder", {"num_heads": 3}, "num_heads=3 does not divide model_dim=16"),
    ("encoder", {"draw": "batch"}, "draw .* 'batch'"),
    ("encoder", {"normalization": "rms"}, "normalization .* 'rms'"),
    ("encoder", {"use_bias": "attention"}, "use_bias .* 'attention'"),
    ("encoder", {"num_key_value_heads": 3}, "num_key_value_heads=3 does not"),
    ("encoder", {"chunk_size": 0}, "chunk_size .* 0"),
    ("encoder", {"tie_embeddings": True}, "must be vocabulary_size=7; got 3"),
    ("encoder", {"encoding": XPos()}, "XPos is for causal attention"),
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
        "encoder_decoder",
        {"cross_encoding": SinusoidalEncoding()},
        "does nothing in cross",
    ),
    ("encoder_decoder", {"cross_encoding": XPos()}, "XPos is for causal"),
    ("encoder_decoder", {"tie_embeddings": True}, "must be vocabulary_size=7"),
    ("looped_decoder", {"loops": 0}, "loops .* got 0"),
]


@pytest.mark.parametrize(("name", "changes", "message"), WRONG_ARGUMENTS)
def test_wrong_arguments_raise(name, changes, message):
    with pytest.raises(ValueError, match=message):
        MODELS[name](**changes)
