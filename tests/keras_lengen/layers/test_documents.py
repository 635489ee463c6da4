"""Documents packed into a row are computed as in rows of their own."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_lengen.layers import (
    ALiBi,
    AxialEncoding,
    CoupledPositions,
    ForgettingAttention,
    GeometricAttention,
    GridPositions,
    MultiHeadAttention,
    NTKRoPE,
    PaTHAttention,
    RandomizedPositions,
    RoPE,
    SelectiveRoPE,
    StickBreakingAttention,
    TransformerBlock,
)
from keras_lengen.layers.documents import find_documents
from keras_lengen.layers.positions.packing import place_documents
from keras_lengen.models import (
    EncoderDecoder,
    LoopedDecoder,
    TransformerDecoder,
    TransformerEncoder,
)
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.layers.positions import table as samplers
from tests.keras_lengen.models.small import with_random_weights
from tests.products import product

HEADS, WIDTH, TOKENS = 2, 8, 12
RANDOM = np.random.default_rng(3)
STATES = RANDOM.normal(size=(2, TOKENS, 16)).astype("float32")
IDS = RANDOM.integers(9, size=(2, TOKENS), dtype="int32")
# A number that comes again is another document.
SEGMENTS = np.array([[3] * 5 + [0] + [3] * 6, [1] * 4 + [2] * 8])
REAL = np.ones((2, TOKENS), "bool")
REAL[0, [2, 11]] = REAL[1, [0, 5]] = False


def split(segments=SEGMENTS):
    """The row and the tokens of each document, as far as they are real."""
    for row, numbers in enumerate(segments):
        starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
        for part in np.split(np.arange(len(numbers)), starts[1:]):
            yield row, part


def assert_like_rows(layer, *, positions=None, mask=None, **options):
    """A packed call of attention gives what its documents give in rows."""
    x, keep = ops.convert_to_tensor(STATES), {"value_mask": mask}
    layer(x, x, positions=positions, **options)
    with_random_weights(layer)
    packed = layer(
        *(x, x), segment_ids=SEGMENTS, positions=positions, **keep, **options
    )
    for row, part in split():
        if mask is not None:
            part = part[mask[row, part]]
        states = ops.convert_to_tensor(STATES[row : row + 1, part])
        given = {} if positions is None else {"positions": positions[row, part]}
        expected = layer(states, states, **given, **options)
        np.testing.assert_allclose(
            ops.convert_to_numpy(packed)[row, part], expected[0], atol=1e-5
        )


@pytest.mark.parametrize(
    "variant",
    product(
        [v for v in encodings.at_stage("rotation", "bias") if "Axial" not in v],
        keep=encodings.in_families,
    ),
)
def test_every_encoding(variant):
    encoding = encodings.make(variant)
    causal = encoding.causal_only or encoding.needs_order
    layer = MultiHeadAttention(HEADS, WIDTH, encoding=encoding)
    if encoding.reads_ranks:
        with pytest.raises(ValueError, match='distances="positions"'):
            layer(STATES, STATES, segment_ids=SEGMENTS)
        return
    positions = None
    if encoding.sampler.draws:
        positions = np.stack([RANDOM.permutation(40)[:TOKENS] for _ in "ab"])
        positions = np.where(causal, np.sort(positions), positions)
    assert_like_rows(layer, positions=positions, use_causal_mask=causal)


LAYERS = {
    "chunks": {"chunk_size": 5},
    "window": {"sliding_window": 3, "sink_tokens": 1},
    "window in chunks": {
        "sliding_window": 3,
        "sink_tokens": 1,
        "chunk_size": 2,
    },
    "adaptive": {"score_factor": "adaptive", "encoding": ALiBi()},
    "length": {"score_factor": "log_length", "chunk_size": 5},
    "train_length": {"train_length": 3, "use_sinks": True},
    "entmax": {"use_entmax": True, "num_key_value_heads": 1},
    "dynamic": {"encoding": NTKRoPE(original_length=3)},
    "selective": {"encoding": SelectiveRoPE(), "num_key_value_heads": 1},
    "selective in chunks": {"encoding": SelectiveRoPE(), "chunk_size": 5},
}
ATTENTIONS = {
    "forgetting": ForgettingAttention,
    "geometric": GeometricAttention,
    "path": PaTHAttention,
    "stick_breaking": StickBreakingAttention,
}


@pytest.mark.parametrize("mask", [None, REAL], ids=["full", "padded"])
@pytest.mark.parametrize("name", [*LAYERS, *ATTENTIONS])
def test_every_attention(name, mask):
    kind = ATTENTIONS.get(name, MultiHeadAttention)
    options = LAYERS.get(name, {})
    assert_like_rows(
        kind(HEADS, WIDTH, **options), mask=mask, use_causal_mask=True
    )


@pytest.mark.parametrize(
    "layer",
    [
        PaTHAttention(HEADS, WIDTH, use_forget_gate=True),
        MultiHeadAttention(HEADS, WIDTH, encoding=SelectiveRoPE()),
    ],
)
def test_tokens_are_not_mixed_with_those_that_a_mask_hides(layer):
    blocks = SEGMENTS[1][:, None] == SEGMENTS[1]
    x, options = STATES[1:], {"use_causal_mask": True}
    packed = layer(x, x, segment_ids=SEGMENTS[1:], **options)
    hidden = layer(x, x, attention_mask=blocks, **options)
    np.testing.assert_allclose(packed, hidden, atol=1e-5)
    with pytest.raises(ValueError, match="leave attention_mask out"):
        layer(
            *(STATES, STATES),
            attention_mask=blocks,
            cache=layer.make_cache(2, TOKENS),
            cache_update_index=0,
            use_causal_mask=True,
        )


MODELS = {
    "encoder": TransformerEncoder,
    "decoder": TransformerDecoder,
    "looped": LoopedDecoder,
    "window": TransformerDecoder,
    "added": TransformerEncoder,
}
FURTHER = {
    "encoder": {"encoding": ALiBi(), "output_size": 9},
    "looped": {"loops": 2},
    "window": {"sliding_window": [3, None], "sink_tokens": 1},
    "added": {
        "encoding": encodings.make("SinusoidalEncoding"),
        "output_size": 9,
    },
}


def make_model(name, kind, **changes):
    model = kind(
        **{
            "vocabulary_size": 9,
            "num_layers": 2,
            "num_heads": HEADS,
            "model_dim": 16,
            "encoding": RoPE(),
            **FURTHER.get(name, {}),
            **changes,
        }
    )
    return with_random_weights(model)


@pytest.mark.parametrize("name", product(MODELS, keep=["encoder", "decoder"]))
def test_models(name):
    model = make_model(name, MODELS[name])
    inputs = {"token_ids": IDS, "segment_ids": SEGMENTS, "padding_mask": REAL}
    model.compile(jit_compile=True)
    packed = model.predict_on_batch(inputs)
    for row, part in split():
        part = part[REAL[row, part]]
        expected = model({"token_ids": IDS[row : row + 1, part]})
        np.testing.assert_allclose(packed[row, part], expected[0], atol=1e-5)


def test_a_target_reads_its_own_source():
    model = make_model("encoder_decoder", EncoderDecoder)
    targets = RANDOM.integers(9, size=(2, 6), dtype="int32")
    segments = np.array([[4, 4, 4, 5, 5, 6], [1, 1, 2, 2, 2, 2]])
    sources = np.array([[4] * 5 + [5] + [6] * 6, [1] * 4 + [2] * 8])
    packed = model(
        {
            "token_ids": IDS,
            "segment_ids": sources,
            "target_ids": targets,
            "target_segment_ids": segments,
        }
    )
    for row, part in split(segments):
        source = sources[row] == segments[row, part[0]]
        expected = model(
            {
                "token_ids": IDS[row : row + 1, source],
                "target_ids": targets[row : row + 1, part],
            }
        )
        np.testing.assert_allclose(
            packed[row].numpy()[part], expected[0], atol=1e-5
        )


def test_blocks():
    block = TransformerBlock(
        HEADS, encoding=RoPE(), cross_attention=True, use_causal_mask=True
    )
    x = ops.convert_to_tensor(STATES)
    packed = block(
        x,
        memory=x,
        segment_ids=SEGMENTS[1:].repeat(2, 0),
        memory_segment_ids=SEGMENTS[1:].repeat(2, 0),
    )
    for part in (slice(4), slice(4, None)):
        expected = block(x[:, part], memory=x[:, part])
        np.testing.assert_allclose(packed[:, part], expected, atol=1e-5)


@pytest.mark.parametrize("variant", samplers.VARIANTS)
@pytest.mark.parametrize("training", [False, True])
def test_every_sampler_numbers_each_document(variant, training):
    sampler = samplers.make(variant)
    documents = find_documents(ops.convert_to_tensor(SEGMENTS))
    if sampler.pairs or sampler.reads_tokens:
        with pytest.raises(ValueError, match="pass `positions`"):
            place_documents(sampler, IDS, documents, training)
        return
    found = ops.convert_to_numpy(
        place_documents(sampler, IDS, documents, training)
    )
    for row, part in split():
        if sampler.keeps_order:
            assert (np.diff(found[row, part]) >= 0).all()
        if not sampler.draws:
            alone = sampler(np.zeros((1, len(part))), training=training)
            alone = ops.reshape(ops.convert_to_numpy(alone), (-1,))
            np.testing.assert_allclose(found[row, part], alone)


def test_randomized_positions_of_documents_are_those_of_rows():
    sampler = RandomizedPositions(max_position=50, seed=1)
    samplers.reset(sampler)
    documents = find_documents(ops.convert_to_tensor(SEGMENTS))
    found = ops.convert_to_numpy(place_documents(sampler, IDS, documents, True))
    for row, part in split():
        samplers.reset(sampler)
        expected = sampler(np.zeros((1, len(part))), training=True)
        np.testing.assert_array_equal(found[row, part], expected)


def attend(**arguments):
    encoding = arguments.pop("encoding", None)
    layer = MultiHeadAttention(HEADS, WIDTH, encoding=encoding)
    inputs = {"value": STATES, "segment_ids": SEGMENTS, **arguments}
    layer(STATES, **inputs)


def call_model(**inputs):
    model = make_model("decoder", TransformerDecoder)
    model({"token_ids": IDS, "segment_ids": SEGMENTS, **inputs})


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (attend, {"segment_ids": SEGMENTS[:, 1:]}, "got 11 for 12 tokens"),
        (attend, {"segment_ids": SEGMENTS * 1.0}, "must be integers"),
        (attend, {"segment_ids": SEGMENTS[0]}, r"shape \(B, T\)"),
        (attend, {"key_segment_ids": SEGMENTS}, "leave key_segment_ids out"),
        (attend, {"value": STATES.copy()}, "needs both segment_ids"),
        (attend, {"length": 20}, "Leave length out"),
        (
            attend,
            {
                "encoding": AxialEncoding(
                    row=RoPE(), column=RoPE(), sampler=GridPositions(width=3)
                )
            },
            "pass `positions`",
        ),
        (
            call_model,
            {"reference_length": 9},
            "at most one of segment_ids and reference_length",
        ),
        (call_model, {"segment_ids": SEGMENTS[:1]}, "got 1 for 2 examples"),
    ],
)
def test_what_cannot_be_packed_is_refused(call, arguments, message):
    with pytest.raises(ValueError, match=message):
        call(**arguments)


def test_rows_that_generation_continues_are_refused():
    model = make_model("decoder", TransformerDecoder)
    inputs = {"token_ids": IDS, "segment_ids": SEGMENTS}
    with pytest.raises(ValueError, match="a row of its own"):
        model.generate(inputs, 2)
    encoding = RoPE(
        sampler=CoupledPositions(max_position=60, items=(1,), end_of_prompt=2)
    )
    model = make_model("decoder", TransformerDecoder, encoding=encoding)
    with pytest.raises(ValueError, match="reads token ids"):
        model(inputs)


@pytest.mark.parametrize(
    "kind",
    product(
        [TransformerEncoder, TransformerDecoder, LoopedDecoder, EncoderDecoder],
        keep=[TransformerDecoder],
    ),
)
def test_losses_and_metrics_do_not_count_padding(kind):
    options = {"loops": 2} if kind is LoopedDecoder else {"output_size": 9}
    model = kind(
        vocabulary_size=9, num_layers=1, num_heads=2, model_dim=16, **options
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(loss=loss, metrics=["accuracy"])
    prefix = "target_" if kind is EncoderDecoder else ""

    def evaluate(rows, tokens, **padding):
        inputs = {"token_ids": IDS[rows]}
        if prefix:
            inputs["target_ids"] = IDS[rows, :tokens]
        inputs["target_ids" if prefix else "token_ids"] = IDS[rows, :tokens]
        inputs |= {prefix + name: value for name, value in padding.items()}
        return np.array(model.evaluate(inputs, IDS[rows, :tokens], verbose=0))

    whole, part = evaluate(slice(1), 12), evaluate(slice(1, 2), 5)
    expected = (12 * whole + 5 * part) / 17
    lengths = np.array([12, 5])
    for padding in (
        {"lengths": lengths},
        {"padding_mask": np.arange(12) < lengths[:, None]},
    ):
        found = evaluate(slice(2), 12, **padding)
        np.testing.assert_allclose(found, expected, atol=1e-6)
