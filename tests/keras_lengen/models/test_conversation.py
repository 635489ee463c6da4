"""Conversations, against passes over their whole text."""

import copy
import pickle

import keras
import numpy as np
import pytest

from keras_lengen.layers import (
    AbacusPositions,
    ALiBi,
    AxialEncoding,
    ForgettingAttention,
    GeometricAttention,
    GridPositions,
    LearnedEncoding,
    NTKRoPE,
    PaTHAttention,
    RandomizedPositions,
    RandomizedRoPE,
    RoPE,
    SinusoidalEncoding,
    T5Bias,
)
from keras_lengen.models import LoopedDecoder, TransformerDecoder
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.layers.positions import table as samplers
from tests.keras_lengen.models.small import (
    list_encodings_and_samplers,
    with_random_weights,
)
from tests.products import product

MAX_LENGTH, VOCABULARY_SIZE = 20, 9
RANDOM = np.random.default_rng(0)
TURNS = [
    RANDOM.integers(1, VOCABULARY_SIZE, size=(2, tokens)).astype("int32")
    for tokens in (4, 3, 1)
]
NEW_TOKENS = [3, 2, 4]
LENGTHS = [np.array([4, 2]), np.array([1, 3]), np.array([1, 1])]
SHAPE = {
    "vocabulary_size": VOCABULARY_SIZE,
    "num_layers": 2,
    "num_heads": encodings.HEADS,
    "model_dim": encodings.MODEL_DIM,
    "feedforward_dim": 8,
}


@pytest.fixture(autouse=True)
def _eager(request):
    """Compiles no programs, which here takes longest, unless that is tested."""
    compiled = ("test_compiled_programs", "test_a_copy_is_a_branch")
    if (
        request.node.originalname in compiled
        or keras.backend.backend() != "tensorflow"
    ):
        yield
        return
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


def decoder(encoding=None, cls=TransformerDecoder, **changes):
    """A decoder whose next token depends on more than the last one."""
    model = cls(**{**SHAPE, "encoding": encoding, **changes})
    for weight in model.trainable_variables:
        if weight.path.split("/")[-1] == "embeddings":
            weight.assign(30 * weight)
    return model


def talk(conversation, turns=TURNS, lengths=None, **options):
    """Tokens and logits of the answers, and the whole text of each row."""
    options = {"jit_compile": False, "return_logits": True, **options}
    answers, texts = [], [[] for _ in turns[0]]
    for number, prompts in enumerate(turns):
        inputs = {"token_ids": prompts}
        if lengths is not None:
            inputs["lengths"] = lengths[number]
        answer = conversation.generate(inputs, NEW_TOKENS[number], **options)
        answers.append(answer)
        counts = [prompts.shape[1]] * len(prompts)
        counts = counts if lengths is None else lengths[number]
        for row, text in enumerate(texts):
            text += [*prompts[row, : counts[row]], *answer[0][row]]
    return answers, texts


def expected_logits(model, conversation, text, row):
    """Logits of every token of a text, from one pass over all of it."""
    tokens = len(text)
    real = np.flatnonzero(conversation._text.mask[row])[:tokens]

    def own(axis):
        axis = np.asarray(axis)
        return (axis if axis.ndim == 1 else axis[row])[real]

    positions = [
        keras.tree.map_structure(own, each)
        for each in conversation._text.positions
    ]
    inputs = {
        "token_ids": np.array([text]),
        "positions": positions if model.places_by_layer() else positions[0],
        "reference_length": conversation.max_length,
    }
    return np.asarray(model(inputs))[0]


def assert_full_pass(model, lengths=None, atol=2e-5, **options):
    """Asserts that answers have the logits of a pass over the whole text."""
    conversation = model.start_conversation(max_length=MAX_LENGTH, **options)
    answers, texts = talk(conversation, lengths=lengths)
    for row, text in enumerate(texts):
        expected = expected_logits(model, conversation, text, row)
        end = 0
        for number, (tokens, logits) in enumerate(answers):
            given = TURNS[number].shape[1]
            end += given if lengths is None else lengths[number][row]
            new = slice(end - 1, end - 1 + NEW_TOKENS[number])
            np.testing.assert_allclose(logits[row], expected[new], atol=atol)
            np.testing.assert_array_equal(
                tokens[row], np.argmax(logits[row], axis=-1)
            )
            end += NEW_TOKENS[number]


@pytest.mark.parametrize(
    ("variant", "sampler"),
    list_encodings_and_samplers("RoPE", "RelativeEncoding"),
    ids=str,
)
def test_it_is_a_pass_over_the_whole_text(variant, sampler):
    changes = {"sampler": samplers.make(sampler)} if sampler else {}
    assert_full_pass(decoder(encodings.make(variant, **changes)), LENGTHS)


@pytest.mark.product
@pytest.mark.parametrize("variant", encodings.FAMILIES)
def test_texts_without_padding(variant):
    assert_full_pass(decoder(encodings.make(variant)))


def other_decoders():
    sampler = RandomizedPositions(max_position=64)
    near = RoPE(sampler=sampler)
    grid = GridPositions(width=3)
    return {
        "draws by layer": decoder(RandomizedRoPE(), draw="layer"),
        "encodings by layer": decoder(
            [near, None, ALiBi(), near], num_layers=4
        ),
        "rows of examples": decoder(
            RandomizedRoPE(max_position=64, resample="example")
        ),
        "length": decoder(NTKRoPE(scaling_factor=2.0, original_length=4)),
        "pairs": decoder(
            AxialEncoding(row=RoPE(), column=RoPE(), sampler=grid)
        ),
        "chunks": decoder(T5Bias(), chunk_size=2, num_key_value_heads=1),
        "window": decoder(ALiBi(), sliding_window=3, sink_tokens=1),
        "loops": decoder(RoPE(), cls=LoopedDecoder, loops=2),
        "gates": decoder(attention=ForgettingAttention),
        "paths": decoder(attention=PaTHAttention),
        "geometric": decoder(attention=GeometricAttention),
        "tokens": decoder(
            SinusoidalEncoding(
                sampler=AbacusPositions(digits=range(1, 6), max_shift=8)
            )
        ),
    }


@pytest.mark.product
@pytest.mark.parametrize(
    "name",
    product(
        other_decoders(),
        keep=["encodings by layer", "rows of examples", "tokens"],
    ),
)
def test_other_decoders(name):
    assert_full_pass(other_decoders()[name], LENGTHS)


def test_half_precision():
    model = decoder(RoPE(), dtype="mixed_bfloat16")
    assert_full_pass(model, LENGTHS, atol=0.1)


@pytest.mark.product
@pytest.mark.parametrize("lengths", product([None, LENGTHS], [LENGTHS]))
def test_compiled_programs(lengths):
    model = decoder(RandomizedRoPE(max_position=64, evaluation="even"))
    conversations = [
        model.start_conversation(max_length=MAX_LENGTH) for _ in range(2)
    ]
    found, same = (
        talk(each, lengths=lengths, jit_compile=jit_compile)[0]
        for each, jit_compile in zip(conversations, (True, False), strict=True)
    )
    for one, other in zip(found, same, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_allclose(one[1], other[1], atol=2e-5)


@pytest.mark.parametrize("encoding", [RoPE(), T5Bias(), SinusoidalEncoding()])
def test_it_generates_what_follows_the_whole_text(encoding):
    model = decoder(encoding)
    conversation = model.start_conversation(max_length=MAX_LENGTH)
    texts = np.zeros((2, 0), "int32")
    for prompts, new_tokens in zip(TURNS, NEW_TOKENS, strict=True):
        texts = np.concatenate([texts, prompts], axis=1)
        found = conversation.generate(prompts, new_tokens, jit_compile=False)
        expected = model.generate(texts, new_tokens, jit_compile=False)
        np.testing.assert_array_equal(found, expected)
        texts = np.concatenate([texts, found], axis=1)
    assert conversation.length == texts.shape[1]


def test_given_positions_are_those_without_padding():
    model = decoder(RandomizedRoPE(max_position=8))
    positions = np.sort(RANDOM.choice(64, size=(2, MAX_LENGTH)), axis=1)
    assert_full_pass(model, LENGTHS, positions=positions)
    conversation = model.start_conversation(
        max_length=MAX_LENGTH, positions=positions
    )
    talk(conversation, lengths=LENGTHS)
    mask = conversation._text.mask
    for row in range(2):
        found = np.asarray(conversation._text.positions[0])[row, mask[row]]
        np.testing.assert_array_equal(found, positions[row, : len(found)])


@pytest.mark.parametrize("side", ["left", "right"])
def test_each_row_goes_on_as_it_does_alone(side):
    model = decoder(ALiBi())
    ids, masks = [], []
    for prompts, lengths in zip(TURNS, LENGTHS, strict=True):
        tokens = prompts.shape[1]
        mask = np.arange(tokens) < lengths[:, None]
        if side == "left":
            mask = mask[:, ::-1]
        ids.append(np.zeros_like(prompts))
        ids[-1][mask] = np.concatenate(
            [row[:length] for row, length in zip(prompts, lengths, strict=True)]
        )
        masks.append(mask)
    batch = model.start_conversation(max_length=MAX_LENGTH)
    alone = [model.start_conversation(max_length=30) for _ in range(2)]
    for turn, new_tokens in enumerate(NEW_TOKENS):
        inputs = {"token_ids": ids[turn], "padding_mask": masks[turn]}
        found = batch.generate(inputs, new_tokens, jit_compile=False)
        for row in range(2):
            prompt = TURNS[turn][row : row + 1, : LENGTHS[turn][row]]
            expected = alone[row].generate(
                prompt, new_tokens, jit_compile=False
            )
            np.testing.assert_array_equal(found[row], expected[0])


def counted(monkeypatch, model):
    """Numbers of tokens of every pass through the blocks."""
    counts = []
    features = model.features

    def count(token_ids, *args, **kwargs):
        counts.append(token_ids.shape[1])
        return features(token_ids, *args, **kwargs)

    monkeypatch.setattr(model, "features", count)
    return counts


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="loops of other backends run their body once to compile it",
)
def test_each_token_is_computed_once(monkeypatch):
    model = decoder(RoPE())
    counts = counted(monkeypatch, model)
    conversation = model.start_conversation(max_length=MAX_LENGTH)
    talk(conversation)
    # The last token of an answer is read with the next prompt.
    assert counts == [4, 1, 1, 1 + 3, 1, 1 + 1, 1, 1, 1]
    assert sum(counts) == conversation.length - 1


def test_positions_are_drawn_once(monkeypatch):
    drawn = []
    sample = RandomizedPositions.sample

    def count(self, inputs, **kwargs):
        drawn.append(sample(self, inputs, **kwargs))
        return drawn[-1]

    monkeypatch.setattr(RandomizedPositions, "sample", count)
    model = decoder(RandomizedRoPE(max_position=64, seed=3))
    conversation = model.start_conversation(max_length=MAX_LENGTH)
    talk(conversation)
    (positions,) = drawn
    assert positions.shape == (MAX_LENGTH,)
    for found in conversation._text.positions:
        np.testing.assert_array_equal(found, positions)


@pytest.mark.parametrize("window", [None, 3])
def test_an_ended_row_goes_on_after_its_end_token(window):
    model = decoder(T5Bias(), sliding_window=window)
    free = model.generate(TURNS[0], 8, jit_compile=False)
    # Ends the first row early.
    ends = [int(free[0, 1])]
    conversation = model.start_conversation(max_length=30)
    first = conversation.generate(
        TURNS[0], 8, end_token=ends, jit_compile=False
    )
    second = conversation.generate(TURNS[1], 3, jit_compile=False)
    lengths = []
    for row in range(2):
        (hits,) = np.nonzero(first[row] == ends[0])
        lengths.append(hits[0] + 1 if len(hits) else 8)
        text = [*TURNS[0][row], *first[row, : lengths[-1]], *TURNS[1][row]]
        expected = model.generate(np.array([text]), 3, jit_compile=False)
        np.testing.assert_array_equal(second[row], expected[0])
    assert lengths[0] < 8
    # The rest of a row that nobody needs makes room.
    assert conversation.length == 4 + max(lengths) + 3 + 3


@pytest.mark.parametrize("taken", [1, 2, 3])
def test_a_stream_may_be_left(taken):
    model = decoder(RoPE())
    conversation = model.start_conversation(max_length=MAX_LENGTH)
    stream = conversation.stream(TURNS[0], 3, jit_compile=False)
    tokens = np.stack([next(stream) for _ in range(taken)], axis=1)
    text = np.concatenate([TURNS[0], tokens, TURNS[1]], axis=1)
    assert conversation.length == 4 + taken
    expected = model.generate(TURNS[0], 3, jit_compile=False)
    np.testing.assert_array_equal(tokens, expected[:, :taken])
    found = [*conversation.stream(TURNS[1], 2, jit_compile=False)]
    expected = model.generate(text, 2, jit_compile=False)
    np.testing.assert_array_equal(np.stack(found, axis=1), expected)
    with pytest.raises(ValueError, match="went on in another call"):
        next(stream)


def test_a_beam_search_goes_on():
    model = decoder(RoPE())
    conversation = model.start_conversation(max_length=MAX_LENGTH)
    options = {"num_beams": 3, "jit_compile": False}
    texts = np.zeros((2, 0), "int32")
    for prompts, new_tokens in zip(TURNS, NEW_TOKENS, strict=True):
        texts = np.concatenate([texts, prompts], axis=1)
        found = conversation.generate(prompts, new_tokens, **options)
        expected = model.generate(texts, new_tokens, **options)
        np.testing.assert_array_equal(found, expected)
        texts = np.concatenate([texts, found], axis=1)
        options = {"jit_compile": False}


def test_all_of_the_text_is_penalized():
    # The same on all backends, with logits far enough apart.
    model = with_random_weights(decoder(RoPE()))
    conversation = model.start_conversation(max_length=MAX_LENGTH)
    options = {"repetition_penalty": 30.0, "jit_compile": False}
    first = conversation.generate(TURNS[0], 3, **options)
    second = conversation.generate(TURNS[1], 2, **options)
    text = np.concatenate([TURNS[0], first, TURNS[1]], axis=1)
    expected = model.generate(text, 2, **options)
    np.testing.assert_array_equal(second, expected)
    assert (expected != model.generate(text, 2, jit_compile=False)).any()


def test_a_failed_call_changes_nothing():
    model = decoder(RandomizedRoPE(seed=1))
    conversation = model.start_conversation(max_length=9)
    conversation.generate(TURNS[0], 2, jit_compile=False)
    with pytest.raises(ValueError, match="6 tokens of max_length=9: 3 more "):
        conversation.generate(TURNS[1], 1, jit_compile=False)
    assert conversation.length == 6
    assert conversation.generate(TURNS[2], 2, jit_compile=False).shape == (2, 2)


def test_a_call_without_valid_logits_changes_nothing():
    model = decoder(RoPE())
    conversation, other = (
        model.start_conversation(max_length=MAX_LENGTH) for _ in range(2)
    )
    other.generate(TURNS[0], 3, jit_compile=False)
    stream = conversation.stream(TURNS[0], 3, jit_compile=False)
    next(stream)
    model.head.bias.assign(np.full(VOCABULARY_SIZE, np.nan))
    with pytest.raises(ValueError, match="new token 0 of row 0 are NaN"):
        conversation.generate(TURNS[1], 2, jit_compile=False)
    model.head.bias.assign(np.zeros(VOCABULARY_SIZE))
    assert conversation.length == 5
    assert len([*stream]) == 2
    found, expected = (
        each.generate(TURNS[1], 2, jit_compile=False)
        for each in (conversation, other)
    )
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "make_copy",
    [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))],
    ids=["deepcopy", "pickle"],
)
def test_a_copy_is_a_branch(make_copy):
    options = {"jit_compile": False, "return_logits": True}
    model = decoder(RandomizedRoPE(max_position=64, seed=3), num_layers=1)
    conversation = model.start_conversation(max_length=MAX_LENGTH)
    stream = conversation.stream(TURNS[0], 3, jit_compile=False)
    next(stream)
    early = make_copy(conversation)
    # A stream goes on where it began.
    assert len([*stream]) == 2
    branch = make_copy(conversation)
    assert (branch.model is model) == (make_copy is copy.deepcopy)
    for found, expected in zip(
        branch.generate(TURNS[1], 2, **options),
        conversation.generate(TURNS[1], 2, **options),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    branch.generate(TURNS[1], 2, **options)
    lengths = [each.length for each in (early, conversation, branch)]
    assert lengths == [5, 12, 17]


@pytest.mark.parametrize(
    ("encoding", "max_length", "message"),
    [
        (None, 0, "max_length must be a positive integer; got 0"),
        (LearnedEncoding(max_position=8), 9, "max_position"),
        (RandomizedRoPE(max_position=8), 9, "9 tokens.*max_position=8"),
    ],
)
def test_there_must_be_positions(encoding, max_length, message):
    model = decoder(encoding)
    with pytest.raises(ValueError, match=message):
        model.start_conversation(max_length=max_length)


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        ({"token_ids": TURNS[0][:1]}, {}, "a row for each of the 2 rows"),
        ({"positions": np.arange(4)}, {}, "must not have the key 'positions'"),
        ({"token_ids": TURNS[0][:, :0]}, {}, "must have at least one token"),
        ({"lengths": np.array([0, 2])}, {}, "prompt 0 without a token"),
        ({"token_ids": TURNS[0] + 9}, {}, "token_ids"),
        ({}, {"max_new_tokens": 0}, "max_new_tokens .* positive .* got 0"),
        ({}, {"top_k": 3}, "top_k=3 .* temperature=0"),
        ({}, {"max_new_tokens": 20}, "do not fit. Start a conversation with"),
    ],
)
@pytest.mark.parametrize("method", ["generate", "stream"])
def test_wrong_inputs_raise(method, inputs, options, message):
    conversation = decoder().start_conversation(max_length=MAX_LENGTH)
    conversation.generate(TURNS[0], 1, jit_compile=False)
    inputs = {"token_ids": TURNS[0], **inputs}
    options = {"max_new_tokens": 2, **options}
    with pytest.raises(ValueError, match=message):
        getattr(conversation, method)(inputs, **options)
    assert conversation.length == 5


def test_there_is_no_memory_to_attend_to():
    model = decoder(cross_attention=True)
    with pytest.raises(ValueError, match="without cross_attention"):
        model.start_conversation(max_length=9)


def test_given_positions_must_be_enough():
    model = decoder(RoPE())
    conversation = model.start_conversation(
        max_length=9, positions=np.arange(8)
    )
    with pytest.raises(ValueError, match="got 8 for 9 tokens"):
        conversation.generate(TURNS[0], 2)
