"""Documents packed into a row are computed as in rows of their own."""

import numpy as np
import pytest
from keras import ops

from keras_lengen.conformance.requirements import restart
from keras_lengen.layers import (
    ALiBi,
    CoupledPositions,
    MultiHeadAttention,
    PaTHAttention,
    RandomizedPositions,
    RoPE,
    SelectiveRoPE,
    SinusoidalEncoding,
)
from keras_lengen.layers.documents import find_documents
from keras_lengen.layers.positions.placing import place_documents
from tests.keras_lengen.layers.encodings.table import make_axial
from tests.keras_lengen.layers.positions import table as samplers
from tests.keras_lengen.models import small
from tests.refusals import refuses

HEADS, WIDTH, TOKENS = 2, 8, 12
RANDOM = np.random.default_rng(3)
STATES = RANDOM.normal(size=(2, TOKENS, 16)).astype("float32")
IDS = RANDOM.integers(7, size=(2, TOKENS), dtype="int32")
# A number that comes again is another document.
SEGMENTS = np.array([[3] * 5 + [0] + [3] * 6, [1] * 4 + [2] * 8])
REAL = np.ones((2, TOKENS), "bool")
REAL[0, [2, 11]] = REAL[1, [0, 5]] = False


def split(segments=SEGMENTS, mask=None):
    """The row and the tokens of each document, as far as they are real."""
    for row, numbers in enumerate(segments):
        starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
        for part in np.split(np.arange(len(numbers)), starts[1:]):
            yield row, part if mask is None else part[mask[row, part]]


@pytest.mark.parametrize(
    "layer",
    [
        PaTHAttention(HEADS, WIDTH, use_forget_gate=True),
        MultiHeadAttention(HEADS, WIDTH, encoding=SelectiveRoPE()),
        PaTHAttention(HEADS, WIDTH, encoding=SelectiveRoPE()),
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


@pytest.mark.parametrize("variant", samplers.VARIANTS)
@pytest.mark.parametrize("training", [False, True])
def test_every_sampler_numbers_each_document(variant, training):
    sampler = samplers.make(variant)
    documents = find_documents(ops.convert_to_tensor(SEGMENTS))
    if sampler.position_axes == 2 or sampler.reads_tokens:
        with pytest.raises(ValueError, match="pass `positions`"):
            place_documents(sampler, IDS, documents, training)
        return
    # With the draws of a row of its own, where these do not depend on lengths.
    exact = not sampler.is_random or type(sampler) is RandomizedPositions
    restart(sampler)
    found = ops.convert_to_numpy(
        place_documents(sampler, IDS, documents, training)
    )
    for row, part in split():
        if sampler.is_increasing:
            assert (np.diff(found[row, part]) >= 0).all()
        if exact and getattr(sampler, "resample", "batch") == "batch":
            restart(sampler)
            alone = sampler(np.zeros((1, len(part))), training=training)
            alone = ops.reshape(ops.convert_to_numpy(alone), (-1,))
            np.testing.assert_allclose(found[row, part], alone)


def attend(**arguments):
    encoding = arguments.pop("encoding", None)
    layer = MultiHeadAttention(HEADS, WIDTH, encoding=encoding)
    inputs = {"value": STATES, "segment_ids": SEGMENTS, **arguments}
    layer(STATES, **inputs)


def call_model(encoding=None, **inputs):
    model = small.decoder(encoding)
    model({"token_ids": IDS, "segment_ids": SEGMENTS, **inputs})


COUPLED = CoupledPositions(max_position=60, items=(1,), end_of_prompt=2)


@refuses(
    (attend, {"key_segment_ids": SEGMENTS}, "leave key_segment_ids out"),
    (attend, {"value": STATES.copy()}, "needs both segment_ids"),
    (attend, {"length": 20}, "Leave length out"),
    (attend, {"encoding": make_axial(RoPE)}, "pass `positions`"),
    (
        call_model,
        {"reference_length": 9},
        "at most one of segment_ids and reference_length",
    ),
    (call_model, {"encoding": RoPE(sampler=COUPLED)}, "reads token ids"),
)
def test_what_cannot_be_packed_is_refused(call, arguments):
    call(**arguments)


MODELS = {
    "encoder": (small.encoder, {"encoding": ALiBi()}),
    "decoder": (small.decoder, {}),
    "looped": (small.looped_decoder, {}),
    "window": (
        small.decoder,
        {"attention": [small.recipe(sliding_window=3, sink_tokens=1), None]},
    ),
    "added": (small.encoder, {"encoding": SinusoidalEncoding()}),
}


@pytest.mark.product
@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    kind, options = MODELS[name]
    model = kind(**{"encoding": RoPE(), "num_layers": 2, **options})
    inputs = {"token_ids": IDS, "segment_ids": SEGMENTS, "padding_mask": REAL}
    model.compile(jit_compile=True)
    packed = model.predict_on_batch(inputs)
    for row, part in split(mask=REAL):
        expected = model({"token_ids": IDS[row : row + 1, part]})
        np.testing.assert_allclose(packed[row, part], expected[0], atol=1e-5)


def test_a_target_reads_its_own_source():
    model = small.encoder_decoder(RoPE(), num_layers=2)
    targets = RANDOM.integers(7, size=(2, 6), dtype="int32")
    segments = np.array([[4, 4, 4, 5, 5, 6], [1, 1, 2, 2, 2, 2]])
    sources = np.array([[4] * 5 + [5] + [6] * 6, [2] * 4 + [1] * 8])
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
