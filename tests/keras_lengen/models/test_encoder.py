import functools

import keras
import numpy as np
import pytest

from keras_lengen.checks.arguments import constructor_arguments
from keras_lengen.layers import (
    ALiBi,
    LearnedEncoding,
    RandomizedPositions,
    RandomizedRoPE,
    RandomizedSinusoidalEncoding,
    RelativeEncoding,
    SinusoidalEncoding,
    XPos,
)
from keras_lengen.models import TransformerEncoder
from tests.keras_lengen.layers.arguments import (
    assert_config_round_trip,
    assert_is_attribute,
    differ,
)
from tests.keras_lengen.layers.positions.table import reset
from tests.keras_lengen.models.small import (
    OUTPUT_SIZE,
    VOCABULARY_SIZE,
    Witness,
    encoder,
    token_ids,
)
from tests.products import product

IDS = token_ids()


@pytest.fixture
def seen(monkeypatch):
    monkeypatch.setattr(Witness, "seen", [])
    return Witness.seen


ARGUMENTS = {
    "vocabulary_size": 9,
    "output_size": 9,
    "num_layers": 2,
    "num_heads": 4,
    "model_dim": 32,
    "feedforward_dim": 9,
    "dropout": 0.5,
    "attention_dropout": 0.5,
    "embedding_dropout": 0.5,
    "encoding": ALiBi(),
    "attention": Witness,
    "normalization": "pre",
    "rms_norm": True,
    "norm_epsilon": 0.5,
    "gated_feedforward": True,
    "activation": keras.activations.gelu,
    "use_bias": True,
    "num_key_value_heads": 1,
    "scale_scores": False,
    "score_factor": "log_length",
    "train_length": 3,
    "logit_soft_cap": 0.1,
    "use_query_key_norm": True,
    "use_gate": True,
    "use_sinks": True,
    "use_entmax": True,
    "sliding_window": 2,
    "sink_tokens": 1,
    "chunk_size": 2,
    "fused": False,
    "tie_embeddings": True,
    "embedding_scale": 2.0,
    "logit_scale": 0.5,
    "embeddings_initializer": keras.initializers.RandomNormal(stddev=1.0),
    "kernel_initializer": keras.initializers.RandomNormal(stddev=1.0),
    "draw": "layer",
}


BASES = {
    "draw": {"num_layers": 2, "encoding": RandomizedRoPE(seed=1)},
    "tie_embeddings": {"output_size": VOCABULARY_SIZE},
    "sink_tokens": {"sliding_window": 2},
    "train_length": {},
    "others": {},
}
"""With which arguments one more shows."""


def model_and_outcome(base, **changes):
    keras.utils.set_random_seed(0)
    model = encoder(**BASES[base], **changes)
    # Evaluation is what the longest length of training changes.
    logits = model(IDS, training=base != "train_length")
    # Weights, too: queries start smaller by what scores are not divided by.
    return model, (logits, [np.array(weight) for weight in model.weights])


@functools.cache
def unchanged_outcome(base):
    return model_and_outcome(base)[1]


def test_outcome_without_changes_repeats_itself():
    assert not differ(
        unchanged_outcome("others"), model_and_outcome("others")[1]
    )


@pytest.mark.parametrize(
    "argument",
    product(
        sorted(constructor_arguments(TransformerEncoder)),
        # What the model does not just pass on to its blocks.
        keep=[
            "attention",
            "draw",
            "embedding_dropout",
            "embedding_scale",
            "embeddings_initializer",
            "encoding",
            "logit_scale",
            "normalization",
            "num_layers",
            "sliding_window",
            "tie_embeddings",
        ],
    ),
)
def test_every_argument_is_an_attribute_and_counts(argument):
    value = ARGUMENTS[argument]
    base = argument if argument in BASES else "others"
    model, outcome = model_and_outcome(base, **{argument: value})
    attention = model.blocks[0].attention_layer
    if argument == "attention":
        assert isinstance(attention, Witness)
    elif argument in ("chunk_size", "fused"):
        assert getattr(attention, argument) == value
    else:
        assert differ(unchanged_outcome(base), outcome)
    assert_is_attribute(model, argument, value)


def test_config_rebuilds_it():
    assert_config_round_trip(encoder(**ARGUMENTS | {"score_factor": "head"}))


@pytest.mark.parametrize("normalization", ["post", "pre", None])
def test_embeddings_are_scaled_and_end_in_the_head(normalization):
    model = encoder(SinusoidalEncoding(), normalization=normalization)
    x = model.embedding(IDS) * 4
    x = model.blocks[0](model.encoding(x))
    if normalization == "pre":
        x = model.final_norm(x)
    np.testing.assert_allclose(model(IDS), model.head(x), atol=1e-6)


def test_without_outputs_it_returns_the_features():
    model = encoder(output_size=None)
    with_head = encoder()
    model.set_weights(with_head.get_weights()[:-2])
    np.testing.assert_allclose(
        with_head.head(model(IDS)), with_head(IDS), atol=1e-6
    )


def test_embedding_dropout_drops_what_the_final_norm_returns_too():
    features = [
        encoder(
            output_size=None, normalization="pre", embedding_dropout=dropout
        )(IDS, training=True)
        for dropout in (None, 0.5)
    ]
    dropped = [float(np.mean(np.asarray(f) == 0)) for f in features]
    assert dropped[0] == 0
    assert 0.35 < dropped[1] < 0.65


@pytest.mark.parametrize("draw", ["model", "layer"])
def test_layers_share_a_draw_or_have_their_own(draw, seen):
    model = encoder(
        RandomizedRoPE(), num_layers=3, attention=Witness, draw=draw
    )
    seen.clear()
    model(IDS)
    assert len(seen) == 3
    for first, second in ((0, 1), (1, 2), (0, 2)):
        same = np.array_equal(seen[first], seen[second])
        assert same == (draw == "model")


@pytest.mark.parametrize("draw", ["model", "layer"])
def test_explicit_positions_go_to_all_layers(draw, seen):
    model = encoder(
        RandomizedRoPE(), num_layers=3, attention=Witness, draw=draw
    )
    seen.clear()
    positions = np.array([3, 4, 6, 7, 20, 25])
    model({"token_ids": IDS, "positions": positions})
    np.testing.assert_array_equal(seen, [positions] * 3)


@pytest.mark.parametrize("draw", ["model", "layer"])
def test_absolute_positions_are_drawn_once(draw):
    model = encoder(
        RandomizedSinusoidalEncoding(), num_layers=2, dropout=0, draw=draw
    )
    reset(model.encoding.sampler)
    positions = model.encoding.sampler(IDS)
    reset(model.encoding.sampler)
    np.testing.assert_array_equal(
        model(IDS), model({"token_ids": IDS, "positions": positions})
    )


def test_padding_changes_nothing_with_a_draw_per_layer():
    model = encoder(RandomizedRoPE(), num_layers=2, draw="layer")
    reset(model.encoding.sampler)
    padded = model({"token_ids": IDS, "lengths": np.array([4, 6])})
    reset(model.encoding.sampler)
    alone = model(IDS[:, :4])
    np.testing.assert_allclose(padded[0, :4], alone[0], atol=1e-5)


@pytest.mark.parametrize(
    ("encoding", "copies"),
    [
        (RelativeEncoding(), 3),
        (LearnedEncoding(max_position=9), 1),
        (ALiBi(), 1),
        (None, 1),
    ],
    ids=["relative", "learned", "alibi", "none"],
)
def test_the_encoding_is_a_template(encoding, copies):
    first, second = (encoder(encoding, num_layers=3) for _ in "12")
    used = [
        {
            id(layer)
            for layer in (model.encoding, *attention_encodings(model))
            if type(layer) is type(model.encoding)
        }
        for model in (first, second)
    ]
    assert not used[0] & used[1]
    assert id(encoding) not in used[0] | used[1]
    assert [len(layers) for layers in used] == [copies, copies]
    assert not {id(w) for w in first.weights} & {id(w) for w in second.weights}


def attention_encodings(model):
    return [block.attention_layer.encoding for block in model.blocks]


def test_two_models_of_one_template_draw_apart():
    encoding = RandomizedRoPE()
    first, second = encoder(encoding), encoder(encoding)
    assert first.encoding.sampler is not second.encoding.sampler
    before = np.array(second.encoding.sampler.seed_generator.state)
    first(IDS)
    after = np.array(second.encoding.sampler.seed_generator.state)
    np.testing.assert_array_equal(before, after)


def test_without_positions_tokens_are_a_set():
    order = np.array([3, 0, 5, 1, 4, 2])
    model = encoder(num_layers=2)
    np.testing.assert_allclose(
        model(IDS[:, order]), np.asarray(model(IDS))[:, order], atol=1e-5
    )


def test_training_drops_out_and_chooses_positions():
    model = encoder(dropout=0.5)
    assert not np.allclose(model(IDS, training=True), model(IDS), atol=1e-3)
    np.testing.assert_array_equal(model(IDS, training=False), model(IDS))
    sampler = RandomizedPositions(max_position=99, evaluation="ordinal")
    model = encoder(ALiBi(sampler=sampler), dropout=0)
    ordinal = {"token_ids": IDS, "positions": np.arange(6)}
    np.testing.assert_array_equal(model(IDS), model(ordinal))
    drawn = model(IDS, training=True)
    assert not np.allclose(drawn, model(ordinal), atol=1e-5)


def test_it_is_part_of_a_functional_model():
    inputs = {
        "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
        "lengths": keras.Input((), dtype="int32", name="lengths"),
    }
    model = encoder(ALiBi())
    outer = keras.Model(inputs, model(inputs))
    assert outer.output.shape == (None, None, OUTPUT_SIZE)
    batch = {"token_ids": IDS, "lengths": np.array([4, 6])}
    np.testing.assert_array_equal(outer(batch), model(batch))


def test_keras_predicts_what_a_call_returns():
    model = encoder(ALiBi())
    batch = {"token_ids": IDS, "padding_mask": IDS > 1}
    np.testing.assert_allclose(
        model.predict(batch, verbose=0), model(batch), atol=1e-5
    )


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            {"tokens": IDS},
            "must not have the key 'tokens': did you mean token_ids",
        ),
        ({"lengths": IDS[:, 0]}, "inputs must have token_ids, .* got lengths"),
        ({"token_ids": IDS, "memory": IDS}, "'memory'"),
        ({"token_ids": IDS, "length": IDS[:, 0]}, "'length'"),
        (
            {
                "token_ids": IDS,
                "lengths": IDS[:, 0],
                "padding_mask": IDS > 0,
            },
            "at most one of lengths and padding_mask",
        ),
    ],
)
def test_unknown_inputs_raise(inputs, message):
    with pytest.raises(ValueError, match=message):
        encoder()(inputs)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_heads": 3}, "num_heads=3 does not divide model_dim=16"),
        ({"draw": "batch"}, "draw .* 'batch'"),
        ({"normalization": "rms"}, "normalization .* 'rms'"),
        ({"use_bias": "attention"}, "use_bias .* 'attention'"),
        ({"num_key_value_heads": 3}, "num_key_value_heads=3 does not divide"),
        ({"chunk_size": 0}, "chunk_size .* 0"),
        ({"tie_embeddings": True}, "must be vocabulary_size=7; got 3"),
        ({"encoding": XPos()}, "XPos is for causal attention"),
    ],
)
def test_wrong_arguments_raise(changes, message):
    with pytest.raises(ValueError, match=message):
        encoder(**changes)
