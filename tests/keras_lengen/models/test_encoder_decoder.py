import functools
import itertools

import keras
import numpy as np
import pytest

from keras_lengen.checks.arguments import constructor_arguments
from keras_lengen.layers import (
    ALiBi,
    AxialEncoding,
    GridPositions,
    InterpolatedPositions,
    RandomizedRoPE,
    RelativeEncoding,
    RoPE,
    SinusoidalEncoding,
    XPos,
)
from keras_lengen.models import EncoderDecoder
from tests.keras_lengen.layers.arguments import (
    assert_config_round_trip,
    assert_is_attribute,
    differ,
)
from tests.keras_lengen.models.small import (
    OUTPUT_SIZE,
    VOCABULARY_SIZE,
    encoder_decoder,
    reset_samplers,
    token_ids,
    with_random_weights,
)
from tests.products import product

SOURCE, TARGET = token_ids(6), token_ids(9)[:, 5:]


def telling(encoding=None, **changes):
    """A model whose attention can tell tokens apart."""
    return encoder_decoder(encoding, embedding_scale=48.0, **changes)


def translate(model, **others):
    batch = {"token_ids": SOURCE, "target_ids": TARGET, **others}
    return np.asarray(model(batch))


@pytest.mark.parametrize("normalization", product(["post", "pre"], ["pre"]))
@pytest.mark.parametrize("cross_encoding", [None, ALiBi()], ids=["", "alibi"])
def test_the_decoder_reads_what_the_encoder_returns(
    normalization, cross_encoding
):
    model = with_random_weights(
        encoder_decoder(
            SinusoidalEncoding(),
            num_layers=2,
            num_decoder_layers=3,
            normalization=normalization,
            cross_encoding=cross_encoding,
        )
    )
    encoder, decoder = model.encoder, model.decoder
    assert (len(encoder.blocks), len(decoder.blocks)) == (2, 3)
    memory = encoder.encoding(encoder.embedding(SOURCE) * 4)
    for block in encoder.blocks:
        memory = block(memory)
    x = decoder.encoding(decoder.embedding(TARGET) * 4)
    if normalization == "pre":
        memory = encoder.final_norm(memory)
    for block in decoder.blocks:
        x = block(x, memory=memory)
    if normalization == "pre":
        x = decoder.final_norm(x)
    np.testing.assert_allclose(
        translate(model), decoder.head(x), rtol=1e-4, atol=1e-4
    )


def test_no_weight_is_shared():
    model = encoder_decoder(
        RelativeEncoding(), num_layers=2, cross_encoding=RelativeEncoding()
    )
    first, second = (
        {id(weight) for weight in stack.weights}
        for stack in (model.encoder, model.decoder)
    )
    assert not first & second
    assert len(model.weights) == len(first | second)


@pytest.mark.parametrize(
    "initializer", [None, keras.initializers.RandomNormal(stddev=1.0)]
)
def test_both_embeddings_are_drawn(initializer):
    model = encoder_decoder(embeddings_initializer=initializer)
    assert not np.array_equal(
        model.encoder.embedding.embeddings, model.decoder.embedding.embeddings
    )


def test_target_tokens_see_all_of_the_source_and_no_later_targets():
    model = telling(RoPE(), num_layers=2)
    logits = translate(model)
    ids = TARGET.copy()
    ids[:, 2] = (ids[:, 2] + 1) % VOCABULARY_SIZE
    change = np.abs(translate(model, target_ids=ids) - logits).max(axis=(0, 2))
    assert (change[:2] < 1e-5).all()
    assert change[2] > 1e-2
    for token in range(6):
        ids = SOURCE.copy()
        ids[:, token] = (ids[:, token] + 1) % VOCABULARY_SIZE
        change = np.abs(translate(model, token_ids=ids) - logits)
        assert (change.max(axis=-1) > 1e-4).all()


def padded(ids, side):
    """Sequences with two tokens of padding, and their mask."""
    width = {"none": (0, 0), "left": (2, 0), "right": (0, 2)}[side]
    mask = np.pad(np.ones(ids.shape, "bool"), [(0, 0), width])
    return np.pad(ids, [(0, 0), width], constant_values=1), mask


SIDES = ("none", "left", "right")


@pytest.mark.parametrize(
    ("source_side", "target_side"),
    product(
        itertools.product(SIDES, SIDES),
        keep=[("left", "right"), ("right", "left")],
    ),
)
@pytest.mark.parametrize("draw", product(["model", "layer"], keep=["layer"]))
def test_padding_of_either_sequence_changes_nothing(
    source_side, target_side, draw
):
    model = telling(
        RandomizedRoPE(), num_layers=2, cross_encoding=ALiBi(), draw=draw
    )
    reset_samplers(model)
    expected = translate(model)
    source, source_mask = padded(SOURCE, source_side)
    target, target_mask = padded(TARGET, target_side)
    reset_samplers(model)
    logits = translate(
        model,
        token_ids=source,
        padding_mask=source_mask,
        target_ids=target,
        target_padding_mask=target_mask,
    )
    real = logits[target_mask].reshape(expected.shape)
    np.testing.assert_allclose(real, expected, atol=1e-4)


def test_lengths_are_those_of_source_and_target():
    model = telling(RoPE(), cross_encoding=RoPE())
    logits = translate(
        model, lengths=np.array([4, 6]), target_lengths=np.array([4, 3])
    )
    for example, (source, target) in enumerate([(4, 4), (6, 3)]):
        alone = translate(
            model, token_ids=SOURCE[:, :source], target_ids=TARGET[:, :target]
        )
        np.testing.assert_allclose(
            logits[example, :target], alone[example], atol=1e-5
        )


@pytest.mark.parametrize(
    ("cross_encoding", "matters"), [(None, False), (RoPE(), True)]
)
def test_where_the_source_stands_matters_to_a_cross_encoding(
    cross_encoding, matters
):
    model = telling(RoPE(), cross_encoding=cross_encoding)
    logits = translate(model)
    from_nine = {"positions": np.arange(9, 15)}
    both = {**from_nine, "target_positions": np.arange(9, 13)}
    np.testing.assert_allclose(translate(model, **both), logits, atol=1e-4)
    apart = translate(model, **from_nine)
    assert matters != np.allclose(apart, logits, atol=1e-4)


@pytest.mark.parametrize("cross_encoding", [RoPE(), ALiBi(), None])
def test_source_and_target_count_from_zero(cross_encoding):
    model = telling(ALiBi(), cross_encoding=cross_encoding)
    given = {"positions": np.arange(6), "target_positions": np.arange(4)}
    np.testing.assert_array_equal(translate(model, **given), translate(model))


def test_source_and_target_are_drawn_apart():
    encoding = RandomizedRoPE(max_position=1000)
    model = telling(encoding, cross_encoding=RoPE())
    reset_samplers(model)
    drawn = {
        "positions": model.encoder.encoding.sampler(SOURCE),
        "target_positions": model.decoder.encoding.sampler(TARGET),
    }
    reset_samplers(model)
    np.testing.assert_array_equal(translate(model), translate(model, **drawn))
    assert model.encoder.encoding.sampler is not model.decoder.encoding.sampler


def test_reference_lengths_are_those_of_source_and_target():
    sampler = InterpolatedPositions(train_length=3)
    model = telling(RoPE(sampler=sampler), cross_encoding=RoPE())
    lengths = {"reference_length": 12, "target_reference_length": 6}
    positions = {
        "positions": np.arange(6) * 3 / 12,
        "target_positions": np.arange(4) * 3 / 6,
    }
    np.testing.assert_allclose(
        translate(model, **lengths), translate(model, **positions), atol=1e-5
    )


def test_rows_and_columns_of_an_image_become_one_class():
    def axial():
        return AxialEncoding(
            row=RoPE(), column=RoPE(), sampler=GridPositions(width=3)
        )

    model = telling(axial(), cross_encoding=axial(), target_vocabulary_size=1)
    start = np.zeros((2, 1), "int32")
    logits = translate(model, target_ids=start)
    assert logits.shape == (2, 1, OUTPUT_SIZE)
    # Two rows, the pixels of which may come in any order.
    order = np.array([4, 0, 5, 1, 3, 2])
    shuffled = translate(
        model,
        target_ids=start,
        token_ids=SOURCE[:, order],
        positions=(order // 3, order % 3),
    )
    np.testing.assert_allclose(shuffled, logits, atol=1e-4)


ARGUMENTS = {
    "vocabulary_size": 9,
    "output_size": 5,
    "target_vocabulary_size": 8,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "cross_encoding": ALiBi(),
}


def model_and_outcome(**changes):
    keras.utils.set_random_seed(0)
    model = encoder_decoder(**changes)
    shapes = [weight.shape for weight in model.weights]
    return model, (translate(model), shapes)


@functools.cache
def unchanged_outcome():
    return model_and_outcome()[1]


@pytest.mark.parametrize(
    "argument",
    sorted(
        constructor_arguments(EncoderDecoder).keys()
        - {"name", "trainable", "dtype"}
    ),
)
def test_every_argument_is_an_attribute_and_counts(argument):
    value = ARGUMENTS[argument]
    model, outcome = model_and_outcome(**{argument: value})
    assert differ(unchanged_outcome(), outcome)
    assert_is_attribute(model, argument, value)


def test_further_arguments_are_those_of_both():
    model = encoder_decoder(
        RoPE(),
        name="translator",
        normalization="pre",
        feedforward_dim=5,
        dtype="mixed_bfloat16",
    )
    assert model.name == "translator"
    for stack in (model.encoder, model.decoder):
        assert isinstance(stack.encoding, RoPE)
        assert (stack.normalization, stack.feedforward_dim) == ("pre", 5)
        assert stack.dtype_policy == model.dtype_policy


def test_target_sizes_are_those_of_the_source_unless_said_otherwise():
    model = encoder_decoder(output_size=None)
    assert model.target_vocabulary_size == VOCABULARY_SIZE
    assert model.output_size == VOCABULARY_SIZE
    assert model.num_decoder_layers == model.num_layers


def test_config_rebuilds_it():
    model = encoder_decoder(
        RandomizedRoPE(),
        **ARGUMENTS,
        normalization="pre",
        name="translator",
        dtype="mixed_bfloat16",
    )
    assert_config_round_trip(model)
    assert model.get_config()["name"] == "translator"


def test_logits_can_be_products_with_the_targets_embeddings():
    model = encoder_decoder(
        target_vocabulary_size=OUTPUT_SIZE,
        tie_embeddings=True,
        normalization="pre",
    )
    assert model.decoder.head is None
    decoder = model.decoder
    table = decoder.embedding.embeddings
    memory = model.encoder(SOURCE)
    x = decoder.embedding(np.minimum(TARGET, 2)) * 4
    x = decoder.final_norm(decoder.blocks[0](x, memory=memory))
    np.testing.assert_allclose(
        translate(model, target_ids=np.minimum(TARGET, 2)),
        x @ keras.ops.transpose(table),
        atol=1e-5,
    )


def test_it_is_part_of_a_functional_model():
    inputs = {
        "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
        "target_ids": keras.Input((None,), dtype="int32", name="target_ids"),
    }
    model = encoder_decoder(ALiBi())
    outer = keras.Model(inputs, model(inputs))
    assert outer.output.shape == (None, None, OUTPUT_SIZE)
    batch = {"token_ids": SOURCE, "target_ids": TARGET}
    np.testing.assert_array_equal(outer(batch), model(batch))


def test_keras_predicts_what_a_call_returns():
    model = encoder_decoder(ALiBi(), cross_encoding=RoPE())
    batch = {
        "token_ids": SOURCE,
        "lengths": np.array([4, 6]),
        "target_ids": TARGET,
        "target_padding_mask": TARGET > 1,
    }
    np.testing.assert_allclose(
        model.predict(batch, verbose=0), model(batch), atol=1e-5
    )


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (SOURCE, "at least token_ids and target_ids; got .*Tensor"),
        ({"token_ids": SOURCE}, "target_ids, .*; got token_ids"),
        ({"target_ids": SOURCE}, "target_ids, .*; got target_ids"),
        (
            {"token_ids": SOURCE, "target_ids": TARGET, "length": 3},
            "the key 'length': did you mean lengths",
        ),
        (
            {"token_ids": SOURCE, "target_ids": TARGET, "target_length": 3},
            "the key 'target_length': did you mean target_lengths",
        ),
    ],
)
def test_wrong_inputs_raise(inputs, message):
    with pytest.raises(ValueError, match=message):
        encoder_decoder()(inputs)


def test_symbols_without_a_target_raise():
    symbol = keras.Input((None,), dtype="int32")
    with pytest.raises(ValueError, match=r"target_ids, .*; got token_ids"):
        encoder_decoder()({"token_ids": symbol})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoding": XPos()}, "in an encoder, tokens attend to later"),
        ({"cross_encoding": SinusoidalEncoding()}, "does nothing in cross"),
        ({"cross_encoding": XPos()}, "XPos is for causal attention"),
        ({"tie_embeddings": True}, "must be vocabulary_size=7; got 3"),
    ],
)
def test_wrong_arguments_raise(changes, message):
    with pytest.raises(ValueError, match=message):
        encoder_decoder(**changes)
