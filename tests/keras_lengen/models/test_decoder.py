import keras
import numpy as np
import pytest

from keras_lengen.checks.arguments import constructor_arguments
from keras_lengen.layers import (
    ALiBi,
    InterpolatedPositions,
    RandomizedRoPE,
    RoPE,
    SinusoidalEncoding,
    XPos,
)
from keras_lengen.models import TransformerDecoder
from keras_lengen.models.base import Transformer
from tests.keras_lengen.layers.arguments import (
    assert_config_round_trip,
    assert_is_attribute,
    differ,
)
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.models.small import (
    MODEL_DIM,
    VOCABULARY_SIZE,
    Witness,
    decoder,
    make,
    token_ids,
    with_random_weights,
)
from tests.products import product

IDS = token_ids()
SPREAD = np.array([1, 4, 5, 11, 30, 47], "int32")
MEMORY = np.random.default_rng(1).normal(size=(2, 5, MODEL_DIM))
MEMORY = MEMORY.astype("float32")
MEMORY_MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "bool")
ORDER = np.array([3, 0, 4, 2, 1])


def reader(encoding=None, **changes):
    """A decoder that attends to a memory, and can tell its tokens apart."""
    return decoder(
        encoding, cross_attention=True, embedding_scale=48.0, **changes
    )


def read(model, **others):
    return np.asarray(model({"token_ids": IDS, "memory": MEMORY, **others}))


@pytest.mark.parametrize(
    "variant", product(encodings.VARIANTS, keep=encodings.in_families)
)
def test_a_token_changes_no_earlier_logits(variant):
    model = make("decoder", variant, num_layers=2, embedding_scale=48.0)
    # Every token of the last sequence is changed in one of the others.
    ids = np.tile(IDS[0], (7, 1))
    ids[np.arange(6), np.arange(6)] = (IDS[0] + 1) % VOCABULARY_SIZE
    logits = np.asarray(model({"token_ids": ids, "positions": SPREAD}))
    for changed in range(6):
        change = np.abs(logits[changed] - logits[-1]).max(axis=-1)
        assert (change[:changed] < 1e-5).all()
        assert change[changed] > 1e-2


def growing_sequences():
    for variant in encodings.VARIANTS:
        yield variant, {}
    stretching = InterpolatedPositions(train_length=4)
    for variant in ("SinusoidalEncoding", "RoPE", "ALiBi", "FIRE"):
        yield variant, {"sampler": stretching}


@pytest.mark.parametrize(
    ("variant", "changes"),
    product(
        growing_sequences(),
        keep=lambda variant, changes: variant in (*encodings.FAMILIES, "ALiBi"),
    ),
    ids=str,
)
def test_logits_stay_when_the_sequence_grows(variant, changes):
    model = make(
        "decoder", variant, encoding_changes=changes, embedding_scale=48.0
    )
    drawn = model.encoding.sampler.draws
    part, whole = (
        model(
            {
                "token_ids": IDS[:, :tokens],
                "reference_length": 6,
                **({"positions": SPREAD[:tokens]} if drawn else {}),
            }
        )
        for tokens in (4, 6)
    )
    np.testing.assert_allclose(whole[:, :4], part, atol=1e-5)


@pytest.mark.parametrize(
    ("variant", "changes"),
    [
        ("NTKRoPE", {"scaling_factor": 2.0, "original_length": 4}),
        ("YaRN", {"scaling_factor": None, "original_length": 4}),
        ("RoPE", {"sampler": InterpolatedPositions(train_length=4)}),
    ],
)
def test_each_sequence_has_its_reference_length(variant, changes):
    model = make(
        "decoder", variant, encoding_changes=changes, embedding_scale=48.0
    )

    def logits(length):
        batch = {"token_ids": IDS, "reference_length": length}
        return np.asarray(model(batch))

    short, long = logits(8), logits(64)
    assert not np.allclose(short, long, atol=1e-4)
    both = logits(np.array([8, 64]))
    np.testing.assert_allclose(both, [short[0], long[1]], atol=1e-5)


def test_tokens_have_the_positions_that_are_given():
    model = decoder(RoPE(), embedding_scale=48.0)
    logits = model(IDS)
    for positions in (np.arange(6), 9 + np.tile(np.arange(6), (2, 1))):
        batch = {"token_ids": IDS, "positions": positions}
        np.testing.assert_allclose(model(batch), logits, atol=1e-4)
    spread = model({"token_ids": IDS, "positions": SPREAD})
    assert not np.allclose(spread, logits, atol=1e-3)


@pytest.mark.parametrize("draw", ["model", "layer"])
def test_layers_share_a_draw_or_have_their_own(draw, monkeypatch):
    monkeypatch.setattr(Witness, "seen", [])
    model = decoder(
        RandomizedRoPE(), num_layers=3, attention=Witness, draw=draw
    )
    model(IDS)
    first, *others = Witness.seen
    assert len(others) == 2
    for positions in others:
        assert np.array_equal(first, positions) == (draw == "model")


@pytest.mark.parametrize("normalization", ["post", "pre", None])
def test_memory_is_read_between_attention_and_feed_forward(normalization):
    model = with_random_weights(reader(normalization=normalization))
    (block,) = model.blocks

    def attend(x):
        return block.attention_layer(x, x, use_causal_mask=True)

    def cross_attend(x):
        return block.cross_attention_layer(x, MEMORY, value_mask=MEMORY_MASK)

    def feed_forward(x):
        return block.output_dense(block.hidden_dense(x))

    x = model.embedding(IDS) * 48
    for part, norm in (
        (attend, "attention_norm"),
        (cross_attend, "cross_attention_norm"),
        (feed_forward, "feedforward_norm"),
    ):
        before = (
            getattr(block, norm) if normalization == "pre" else keras.ops.copy
        )
        x = x + part(before(x))
        if normalization == "post":
            x = getattr(block, norm)(x)
    if normalization == "pre":
        x = model.final_norm(x)
    np.testing.assert_allclose(
        read(model, memory_mask=MEMORY_MASK),
        model.head(x),
        rtol=1e-4,
        atol=1e-4,
    )


def test_hidden_memory_is_as_good_as_absent():
    model = reader(cross_encoding=RoPE())
    hidden = read(model, memory_mask=MEMORY_MASK)
    changed = np.where(MEMORY_MASK[..., None], MEMORY, 5)
    np.testing.assert_array_equal(
        read(model, memory=changed, memory_mask=MEMORY_MASK), hidden
    )
    np.testing.assert_allclose(
        read(model, memory=MEMORY[:, :3])[1], hidden[1], atol=1e-5
    )


def test_memory_is_a_set_unless_cross_attention_has_an_encoding():
    model = reader(RoPE())
    shuffled = MEMORY[:, ORDER]
    np.testing.assert_allclose(
        read(model, memory=shuffled), read(model), atol=1e-5
    )
    for encoding in (RoPE(), ALiBi()):
        model = reader(RoPE(), cross_encoding=encoding)
        logits = read(model)
        np.testing.assert_allclose(
            read(model, memory=shuffled, memory_positions=ORDER),
            logits,
            atol=1e-5,
        )
        assert not np.allclose(read(model, memory=shuffled), logits, atol=1e-3)


@pytest.mark.parametrize(
    "argument",
    sorted(
        constructor_arguments(TransformerDecoder).keys()
        - constructor_arguments(Transformer).keys()
    ),
)
def test_every_argument_is_an_attribute_and_counts(argument):
    base, value = {
        "cross_attention": ({}, True),
        "cross_encoding": ({"cross_attention": True}, ALiBi()),
    }[argument]
    outcomes = []
    for changes in ({}, {argument: value}):
        keras.utils.set_random_seed(0)
        model = decoder(**{**base, **changes})
        memory = {"memory": MEMORY} if model.cross_attention else {}
        outcomes.append(model({"token_ids": IDS, **memory}))
    assert differ(*outcomes)
    assert_is_attribute(model, argument, value)


def test_outputs_are_the_token_ids_unless_said_otherwise():
    assert decoder(output_size=None).output_size == VOCABULARY_SIZE
    assert decoder(output_size=2)(IDS).shape == (2, 6, 2)


def test_padding_and_the_layers_of_t5_go_together_without_a_warning():
    model = decoder(
        rms_norm=True,
        tie_embeddings=True,
        normalization="pre",
        output_size=VOCABULARY_SIZE,
    )
    model({"token_ids": IDS, "lengths": [2] * len(IDS)})


def test_config_rebuilds_it():
    assert_config_round_trip(
        decoder(RandomizedRoPE(), cross_attention=True, cross_encoding=ALiBi())
    )


def test_it_is_part_of_a_functional_model():
    inputs = {
        "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
        "memory": keras.Input((None, MODEL_DIM), name="memory"),
    }
    model = reader(RoPE())
    outer = keras.Model(inputs, model(inputs))
    batch = {"token_ids": IDS, "memory": MEMORY}
    np.testing.assert_array_equal(outer(batch), model(batch))


def test_keras_predicts_what_a_call_returns():
    model = reader(SinusoidalEncoding())
    batch = {
        "token_ids": IDS,
        "lengths": np.array([4, 6]),
        "memory": MEMORY,
        "memory_mask": MEMORY_MASK,
    }
    np.testing.assert_allclose(
        model.predict(batch, verbose=0), model(batch), atol=1e-5
    )


@pytest.mark.parametrize(
    ("changes", "inputs", "message"),
    [
        ({"cross_attention": True}, {}, "must have .*memory"),
        ({}, {"memory": MEMORY}, "must not have the key 'memory'. It may"),
        ({}, {"lengths": 3, "padding_mask": IDS > 0}, "at most one of"),
    ],
)
def test_wrong_inputs_raise(changes, inputs, message):
    with pytest.raises(ValueError, match=message):
        decoder(**changes)({"token_ids": IDS, **inputs})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"cross_attention": True, "cross_encoding": SinusoidalEncoding()},
            "SinusoidalEncoding .* does nothing in cross",
        ),
        (
            {"cross_attention": True, "cross_encoding": XPos()},
            "XPos .* cross attention sees all",
        ),
        ({"cross_encoding": ALiBi()}, "ALiBi .* set cross_attention"),
    ],
)
def test_wrong_encodings_of_cross_attention_raise(changes, message):
    with pytest.raises(ValueError, match=message):
        decoder(**changes)
