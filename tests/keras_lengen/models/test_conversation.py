"""Conversations: what they keep, draw, share and refuse.

`test_generation.py` compares their tokens with decoding in plain NumPy.
"""

import copy
import pickle

import numpy as np
import pytest

from keras_lengen.layers import (
    AbacusPositions,
    LearnedEncoding,
    RandomizedPositions,
    RandomizedRoPE,
    RoPE,
    SinusoidalEncoding,
    T5Bias,
)
from tests.keras_lengen.models import small
from tests.refusals import refuses

MAX_LENGTH, VOCABULARY_SIZE = 20, 9
RANDOM = np.random.default_rng(0)
TURNS = [
    RANDOM.integers(1, VOCABULARY_SIZE, size=(2, tokens)).astype("int32")
    for tokens in (4, 3, 1)
]
NEW_TOKENS = [3, 2, 4]
LENGTHS = [np.array([4, 2]), np.array([1, 3]), np.array([1, 1])]


@pytest.fixture(autouse=True)
def _eager(request):
    """Compiles no programs, which here takes longest, unless that is tested."""
    if request.node.originalname == "test_a_copy_is_a_branch":
        yield
        return
    with small.eagerly():
        yield


def decoder(encoding=None, **changes):
    changes = {"num_layers": 2, **changes}
    return small.attentive(small.decoder, encoding, **changes)


def talk(conversation, lengths=None, **options):
    """Tokens and logits of the answers, and the whole text of each row."""
    answers, texts = [], [[], []]
    for number, prompts in enumerate(TURNS):
        inputs, counts = {"token_ids": prompts}, [prompts.shape[1]] * 2
        if lengths is not None:
            inputs["lengths"] = counts = lengths[number]
        answer = conversation.generate(
            inputs, NEW_TOKENS[number], return_logits=True, **options
        )
        answers.append(answer)
        for row, text in enumerate(texts):
            text += [*prompts[row, : counts[row]], *answer[0][row]]
    return answers, texts


def expected_logits(model, conversation, text, row):
    """Logits of every token of a text, from one pass over all of it."""
    real = np.flatnonzero(conversation._text.mask[row])[: len(text)]

    def own(axis):
        axis = np.asarray(axis)
        return (axis if axis.ndim == 1 else axis[row])[real]

    positions = [own(each) for each in conversation._text.positions]
    inputs = {
        "token_ids": np.array([text]),
        "positions": positions
        if model.positions_differ_by_layer()
        else positions[0],
    }
    return np.asarray(model(inputs))[0]


GIVEN = np.sort(RANDOM.choice(64, size=(2, MAX_LENGTH)), axis=1)
ABACUS = AbacusPositions(digits=range(1, 6), max_shift=8)
DRAWING = {
    "draws by layer": lambda: decoder(
        RandomizedRoPE(), share_positions="layer"
    ),
    "samplers by layer": lambda: decoder(
        [RandomizedRoPE(max_position=64), None, RandomizedRoPE()], num_layers=3
    ),
    "rows of examples": lambda: decoder(
        RandomizedRoPE(max_position=64, resample="example")
    ),
    "tokens": lambda: decoder(SinusoidalEncoding(sampler=ABACUS)),
    "given": lambda: decoder(RandomizedRoPE(max_position=8)),
}


@pytest.mark.product
@pytest.mark.parametrize("name", DRAWING)
def test_drawn_positions_stay(name):
    """Answers have the logits of a pass over the whole text with them."""
    model = DRAWING[name]()
    conversation = model.start_conversation(
        max_length=MAX_LENGTH, positions=GIVEN if name == "given" else None
    )
    answers, texts = talk(conversation, LENGTHS)
    for row, text in enumerate(texts):
        expected = expected_logits(model, conversation, text, row)
        end = 0
        for number, (_, logits) in enumerate(answers):
            end += LENGTHS[number][row]
            new = slice(end - 1, end - 1 + NEW_TOKENS[number])
            np.testing.assert_allclose(logits[row], expected[new], atol=1e-3)
            end += NEW_TOKENS[number]
    if name == "given":
        mask = conversation._text.mask
        for row, positions in enumerate(GIVEN):
            found = np.asarray(conversation._text.positions[0])[row, mask[row]]
            np.testing.assert_array_equal(found, positions[: len(found)])


def test_each_token_is_computed_once_and_positions_are_drawn_once(monkeypatch):
    model = decoder(RandomizedRoPE(max_position=64, seed=3))
    features, sample = model.features, RandomizedPositions.sample
    counts, drawn = [], []

    def count(token_ids, *args, **kwargs):
        counts.append(token_ids.shape[1])
        return features(token_ids, *args, **kwargs)

    def draw(self, inputs, **kwargs):
        drawn.append(sample(self, inputs, **kwargs))
        return drawn[-1]

    monkeypatch.setattr(model, "features", count)
    monkeypatch.setattr(RandomizedPositions, "sample", draw)
    conversation = model.start_conversation(max_length=MAX_LENGTH)
    talk(conversation)
    # The last token of an answer is read with the next prompt.
    assert counts == [4, 1, 1, 1 + 3, 1, 1 + 1, 1, 1, 1]
    assert sum(counts) == conversation.length - 1
    (positions,) = drawn
    assert positions.shape == (MAX_LENGTH,)
    for found in conversation._text.positions:
        np.testing.assert_array_equal(found, positions)


@pytest.mark.product
@pytest.mark.parametrize("window", [None, 3])
def test_an_ended_row_makes_room(window):
    """And its rolling cache is computed again."""
    model = decoder(T5Bias(), attention=small.recipe(sliding_window=window))
    free = model.generate(TURNS[0], 8)
    end = int(free[0, 0])
    conversation = model.start_conversation(max_length=30)
    first = conversation.generate(TURNS[0], 8, end_token=end)
    second = conversation.generate(TURNS[1], 3, return_logits=True)
    lengths = []
    for row in range(2):
        (hits,) = np.nonzero(first[row] == end)
        lengths.append(hits[0] + 1 if len(hits) else 8)
        text = [*TURNS[0][row], *first[row, : lengths[-1]], *TURNS[1][row]]
        expected = model.generate(np.array([text]), 3, return_logits=True)
        for found, wanted in zip(second, expected, strict=True):
            np.testing.assert_allclose(found[row], wanted[0], atol=5e-5)
    assert lengths == [1, 8]
    # The rest of a row that nobody needs makes room.
    assert conversation.length == 4 + max(lengths) + 3 + 3


def test_a_failed_call_changes_nothing():
    model = decoder(RoPE())
    conversation, other = (
        model.start_conversation(max_length=12) for _ in range(2)
    )
    other.generate(TURNS[0], 3)
    stream = conversation.stream(TURNS[0], 3)
    next(stream)
    bias = np.array(model.head.bias)
    model.head.bias.assign(np.full(VOCABULARY_SIZE, np.nan))
    with pytest.raises(ValueError, match="new token 0 of row 0 are NaN"):
        conversation.generate(TURNS[1], 2)
    model.head.bias.assign(bias)
    assert conversation.length == 5
    assert len([*stream]) == 2
    with pytest.raises(ValueError, match="7 tokens of max_length=12: 3 more "):
        conversation.generate(TURNS[1], 3)
    found, expected = (
        each.generate(TURNS[1], 2) for each in (conversation, other)
    )
    np.testing.assert_array_equal(found, expected)


@pytest.mark.product
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
        np.testing.assert_allclose(found, expected, atol=1e-5)
    branch.generate(TURNS[1], 2, **options)
    lengths = [each.length for each in (early, conversation, branch)]
    assert lengths == [5, 12, 17]


@refuses(
    (None, {"max_length": 0}, "max_length .* positive integer; got 0"),
    (LearnedEncoding(max_position=8), {}, "max_position"),
    (RandomizedRoPE(max_position=8), {}, "9 tokens.*max_position=8"),
    (RoPE(), {"positions": np.arange(8)}, "got 8 for 9 tokens"),
    # Positions that only later tokens would have.
    (
        LearnedEncoding(max_position=9),
        {"positions": np.arange(1, 10)},
        "from 0 to 8",
    ),
)
def test_what_no_conversation_can_have(encoding, arguments):
    arguments = {"max_length": 9, **arguments}
    decoder(encoding).start_conversation(**arguments).generate(TURNS[0], 2)


def test_a_conversation_has_no_memory():
    with pytest.raises(ValueError, match="without cross_attention"):
        decoder(cross_attention=True).start_conversation(max_length=9)


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        ({"token_ids": TURNS[0][:1]}, {}, "a row for each of the 2 rows"),
        ({"positions": np.arange(4)}, {}, "must not have the key 'positions'"),
        ({"lengths": np.array([0, 2])}, {}, "prompt 0 without a token"),
        ({"token_ids": TURNS[0] + 9}, {}, "token_ids"),
        ({}, {"max_new_tokens": 20}, "do not fit. Start a conversation with"),
    ],
)
def test_wrong_inputs_raise(inputs, options, message):
    conversation = decoder().start_conversation(max_length=MAX_LENGTH)
    conversation.generate(TURNS[0], 1)
    inputs = {"token_ids": TURNS[0], **inputs}
    options = {"max_new_tokens": 2, **options}
    for method in (conversation.generate, conversation.stream):
        with pytest.raises(ValueError, match=message):
            method(inputs, **options)
    assert conversation.length == 5


@pytest.mark.parametrize("taken", [1, 2, 3])
def test_a_stream_may_be_left(taken):
    model = decoder(RoPE())
    conversation = model.start_conversation(max_length=MAX_LENGTH)
    stream = conversation.stream(TURNS[0], 3)
    tokens = np.stack([next(stream) for _ in range(taken)], axis=1)
    text = np.concatenate([TURNS[0], tokens, TURNS[1]], axis=1)
    assert conversation.length == 4 + taken
    expected = model.generate(TURNS[0], 3)
    np.testing.assert_array_equal(tokens, expected[:, :taken])
    found = [*conversation.stream(TURNS[1], 2)]
    expected = model.generate(text, 2)
    np.testing.assert_array_equal(np.stack(found, axis=1), expected)
    with pytest.raises(ValueError, match="went on in another call"):
        next(stream)
