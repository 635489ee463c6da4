"""What must not change the outputs of attention."""

import functools
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_lengen.conformance import attentions as promises
from keras_lengen.conformance import check_conformance
from keras_lengen.layers import ATTENTIONS, GeometricAttention
from tests.keras_lengen.layers.attention import oracle
from tests.keras_lengen.layers.attention.subjects import (
    BATCH,
    FEATURES,
    FIRST,
    POSITIONS,
    STATES,
    SUBJECTS,
    TOKENS,
    construct,
    copy,
    is_causal,
    make,
)
from tests.keras_lengen.layers.test_documents import split

every_subject = pytest.mark.parametrize("name", SUBJECTS)
first_subjects = pytest.mark.parametrize("name", FIRST)
# The default run has half of the first subjects, .ci/run has all.
pairs_by_ci = pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=[] if name in FIRST[::2] else [pytest.mark.product]
        )
        for name in SUBJECTS
    ],
)
KINDS = {kind: name for name, (kind, *_) in reversed(SUBJECTS.items())}
REAL = np.array(
    [[1, 1, 0, 1, 1, 1, 0, 0, 1], [0, 0, 1, 1, 1, 1, 1, 1, 1]], "bool"
)
# Tokens after each piece: some, a long prompt and one by one, one and the rest.
PIECES = [(4, 5, 8, 9), (6, 7, 8, 9), (1, 9)]
# A number that comes again is another document.
SEGMENTS = np.array([[3] * 4 + [0] + [3] * 4, [1] * 3 + [2] * 6])


@functools.cache
def find_layer(name):
    """The layer, and the options of a call."""
    layer = make(name)
    return layer, {"use_causal_mask": is_causal(layer, name)}


def assert_near(found, expected, tolerance=1e-5):
    found, expected = (
        np.asarray(ops.cast(each, "float32")) for each in (found, expected)
    )
    scale = max(1, np.abs(expected).max())
    np.testing.assert_allclose(found, expected, atol=tolerance * scale)


def test_every_class_is_a_subject():
    assert KINDS.keys() == set(ATTENTIONS.values())


@every_subject
def test_outputs_and_weights_are_those_of_the_definition(name):
    layer, options = find_layer(name)
    found = layer(
        *(STATES, STATES),
        positions=POSITIONS,
        return_attention_scores=True,
        **options,
    )
    causal = options["use_causal_mask"]
    expected = oracle.attend(layer, STATES, causal=causal, positions=POSITIONS)
    for own, other in zip(found, expected, strict=True):
        assert_near(own, other, 2e-5)


def differentiate(layer, states, positions, mask=None, **options):
    """Outputs of real tokens, and gradients by the states and all weights."""
    states = tf.convert_to_tensor(states)
    with tf.GradientTape() as tape:
        tape.watch(states)
        output = layer(
            *(states, states), positions=positions, value_mask=mask, **options
        )
        if mask is not None:
            output = tf.boolean_mask(output, mask)
        loss = tf.reduce_sum(tf.sin(output))
    weights = layer.trainable_variables
    gradients = tape.gradient(loss, [states, *weights])
    # A table that is read by rows has a gradient of another form.
    return [output, *map(tf.convert_to_tensor, gradients)]


@every_subject
def test_gradients_are_those_of_the_definition(name):
    """Along a random direction of all weights, by central differences."""
    layer, options = find_layer(name)
    _, _, *gradients = differentiate(
        layer, STATES, POSITIONS, training=True, **options
    )
    random = np.random.default_rng(3)
    start = layer.get_weights()
    steps = [
        3e-4 * random.choice([-1, 1], weight.shape).astype("float32")
        for weight in start
    ]
    losses = []
    for sign in (1, -1):
        moved = [w + sign * s for w, s in zip(start, steps, strict=True)]
        layer.set_weights(moved)
        outputs, _ = oracle.attend(
            layer,
            STATES,
            causal=options["use_causal_mask"],
            positions=POSITIONS,
            training=True,
        )
        losses.append(np.sin(outputs).sum())
    layer.set_weights(start)
    parts = [g * s for g, s in zip(gradients, steps, strict=True)]
    scale = sum(np.abs(part).sum() for part in parts)
    found = sum(np.sum(part) for part in parts)
    expected = (losses[0] - losses[1]) / 2
    np.testing.assert_allclose(found, expected, atol=2e-3 * scale)


@pairs_by_ci
def test_chunks(name):
    """Sequences are padded, and every weight has a gradient."""
    layer, options = find_layer(name)
    found, expected = (
        differentiate(each, STATES, POSITIONS, REAL, **options)
        for each in (copy(layer, chunk_size=4), layer)
    )
    for own, other in zip(found, expected, strict=True):
        assert np.isfinite(own).all()
        assert_near(own, other, 2e-5)


@pairs_by_ci
def test_pieces_of_a_padded_sequence_with_a_cache(name):
    layer, _ = find_layer(name)
    places = {"positions": POSITIONS, "value_mask": REAL}
    whole = layer(
        STATES, STATES, query_mask=REAL, use_causal_mask=True, **places
    )
    cache = layer.make_cache(BATCH, TOKENS)
    slots = layer.sliding_window and layer.sliding_window + layer.sink_tokens
    local = {"key", "value"} == {*cache} and not layer.encoding.uses_token_index
    if not local or layer.encoding.reads_ranks:
        slots = None
    assert {part.shape[1] for part in cache.values()} == {slots or TOKENS}
    ends = PIECES[list(SUBJECTS).index(name) % len(PIECES)]
    for start, end in itertools.pairwise((0, *ends)):
        part = STATES[:, start:end]
        output, cache = layer(
            *(part, part),
            positions=POSITIONS[:, start:end],
            key_positions=POSITIONS,
            value_mask=REAL,
            cache=cache,
            cache_update_index=start,
            use_causal_mask=True,
        )
        real = REAL[:, start:end]
        assert_near(output[real], whole[:, start:end][real])


@pairs_by_ci
def test_documents_are_computed_as_rows(name):
    layer, options = find_layer(name)
    call = functools.partial(layer, **options)
    if layer.encoding.reads_ranks:
        with pytest.raises(ValueError, match='distances="positions"'):
            call(STATES, STATES, segment_ids=SEGMENTS)
        return
    mask = REAL
    if isinstance(layer, GeometricAttention) and not is_causal(layer, name):
        # Padding between two keys changes which one is nearer.
        mask = np.ones_like(REAL)
    packed = call(STATES, STATES, segment_ids=SEGMENTS, value_mask=mask)
    for row, document in split(SEGMENTS, mask):
        if document.size:
            part = ops.convert_to_tensor(STATES[row : row + 1, document])
            assert_near(packed.numpy()[row, document], call(part, part)[0])


@first_subjects
def test_half_precision(name):
    layer, options = find_layer(name)
    half = copy(layer, dtype="mixed_bfloat16")
    whole = layer(STATES, STATES, positions=POSITIONS, **options)
    found, weights = half(
        *(STATES, STATES),
        positions=POSITIONS,
        return_attention_scores=True,
        **options,
    )
    assert keras.backend.standardize_dtype(found.dtype) == "bfloat16"
    assert keras.backend.standardize_dtype(weights.dtype) == "float32"
    assert_near(found, whole, 0.06)


@first_subjects
def test_padding_is_as_good_as_absent(name):
    promises._check_padding(construct(*SUBJECTS[name]))


@pytest.mark.product
@pytest.mark.parametrize("name", KINDS.values())
def test_all_promises(name):
    check_conformance(construct(*SUBJECTS[name]))


WINDOW = "RoPE, window, softmax, adaptive, gate"
COMPILED = {
    "xla": functools.partial(tf.function, jit_compile=True),
    "unknown sizes": functools.partial(
        tf.function,
        input_signature=[
            tf.TensorSpec((None, None, FEATURES)),
            tf.TensorSpec((None, None), "int32"),
            tf.TensorSpec((None, None), "bool"),
        ],
    ),
}


@pytest.mark.product
@pytest.mark.parametrize("name", [*KINDS.values(), WINDOW])
@pytest.mark.parametrize("compiled", COMPILED)
def test_compiled_programs(name, compiled):
    """Of padded sequences in chunks, with gradients."""
    layer, options = find_layer(name)
    layer = copy(layer, chunk_size=4)

    def compute(*inputs):
        return differentiate(layer, *inputs, training=True, **options)

    inputs = list(map(tf.constant, (STATES, POSITIONS, REAL)))
    found, expected = COMPILED[compiled](compute)(*inputs), compute(*inputs)
    for own, other in zip(found, expected, strict=True):
        assert_near(own, other, 1e-4)
