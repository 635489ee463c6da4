"""Generation, against decoding with a whole pass for each token."""

import contextlib
import functools

import numpy as np
import pytest
from keras import ops

from keras_lengen.layers import (
    ALiBi,
    ForgettingAttention,
    GeometricAttention,
    LearnedEncoding,
    NTKRoPE,
    PaTHAttention,
    RandomizedRoPE,
    Recipe,
    RoPE,
    T5Bias,
)
from tests.covering import cover
from tests.keras_lengen.layers.encodings.table import make_axial
from tests.keras_lengen.models import decoding, small
from tests.keras_lengen.models.small import attentive, eagerly, recipe

VOCABULARY_SIZE, NEW_TOKENS, MAX_LENGTH = 9, 4, 20
RANDOM = np.random.default_rng(0)
TURNS = [
    RANDOM.integers(VOCABULARY_SIZE, size=(3, tokens)) for tokens in (5, 3)
]
LENGTHS = [np.array([5, 2, 4]), np.array([1, 3, 2])]
PROMPTS = TURNS[0]
SOURCES = {
    "token_ids": RANDOM.integers(VOCABULARY_SIZE, size=(3, 4)),
    "lengths": np.array([4, 1, 3]),
}


make = functools.partial(attentive, small.decoder)
SUBJECTS = {
    "rotation": lambda: make(RoPE(), num_layers=2),
    "grouped heads": lambda: make(
        T5Bias(), num_key_value_heads=1, attention=recipe(chunk_size=2)
    ),
    "rolling cache": lambda: make(
        ALiBi(), attention=recipe(sliding_window=3, sink_tokens=1)
    ),
    "layers": lambda: make(
        [RoPE(), None, ALiBi()],
        num_layers=3,
        normalization="pre",
        attention=[
            None,
            recipe(sliding_window=2),
            recipe(sliding_window=3, use_gate=True),
        ],
    ),
    "length": lambda: make(NTKRoPE(scaling_factor=2.0, original_length=4)),
    "pairs": lambda: make(make_axial(RoPE, width=3)),
    "even positions": lambda: make(
        RandomizedRoPE(max_position=64, evaluation="even"),
        share_positions="layer",
        num_layers=2,
    ),
    "loops": lambda: attentive(small.looped_decoder, RoPE()),
    "memory": lambda: attentive(
        small.encoder_decoder, RoPE(), cross_encoding=ALiBi()
    ),
    "forgetting": lambda: make(attention=ForgettingAttention),
    "paths": lambda: make(
        attention=Recipe(PaTHAttention, use_forget_gate=True)
    ),
    "geometric": lambda: make(attention=GeometricAttention),
}
METHODS = {
    "greedy": {},
    "penalty": {"repetition_penalty": 1.7},
    "beams": {"num_beams": 3, "length_penalty": 0.6},
    "penalized beams": {"num_beams": 2, "repetition_penalty": 1.7},
}
WAYS = ("generate", "stream", "conversation")
SIDES = (None, "left", "right")
ENDS = ((), (4,), (2, 7, 5))


def goes_together(subject, method, way, *_):
    if subject == "memory" and way == "conversation":
        return False
    return way != "stream" or "beams" not in method


# What each prompt has of its own goes to all of its beams.
BEAMS = [
    (subject, "beams", "generate", "right", ())
    for subject in ("even positions", "length", "rolling cache", "memory")
]
ROWS = [
    pytest.param(
        *(*row, number % 12 == 1),
        marks=() if number % 6 == 3 else pytest.mark.product,
    )
    for number, row in enumerate(
        [
            *cover(
                [*SUBJECTS], [*METHODS], WAYS, SIDES, ENDS, keep=goes_together
            ),
            *BEAMS,
        ]
    )
]


def pad(prompts, lengths, side):
    """Inputs with prompts, of which padding hides a part."""
    if side is None:
        return {"token_ids": prompts}, [prompts.shape[1]] * len(prompts)
    if side == "right":
        return {"token_ids": prompts, "lengths": lengths}, lengths
    tokens = prompts.shape[1]
    moved = [
        np.roll(row, -length)
        for row, length in zip(prompts, lengths, strict=True)
    ]
    mask = np.arange(tokens) >= tokens - lengths[:, None]
    return {"token_ids": np.stack(moved), "padding_mask": mask}, lengths


def as_target(model, batch):
    """Inputs of a model, whose target the prompts are if it has sources."""
    if model.id_inputs is None:
        return batch
    names = {name: f"target_{name.removeprefix('token_')}" for name in batch}
    return {**SOURCES, **{names[name]: batch[name] for name in batch}}


def reader(model, row, total):
    """A function from texts to the logits of their next tokens.

    The texts are a part of `total` tokens, because positions may depend on the
    length.
    """

    def read(texts):
        ids = np.zeros((len(texts), total), "int32")
        ids[:, : len(texts[0])] = texts
        batch = as_target(model, {"token_ids": ids})
        for name in SOURCES if model.id_inputs is not None else ():
            batch[name] = np.repeat(SOURCES[name][row : row + 1], len(ids), 0)
        return np.asarray(model(batch))[:, len(texts[0]) - 1]

    return read


def run(model, way, batch, **options):
    """The tokens that one call generates, and their logits if it has them."""
    if way != "stream":
        returns = options.get("num_beams", 1) == 1
        found = model.generate(
            batch, NEW_TOKENS, return_logits=returns, **options
        )
        return found if returns else (found, None)
    end = options.get("end_token", (0,))[0]
    tokens = np.stack([*model.stream(batch, NEW_TOKENS, **options)], axis=1)
    missing = NEW_TOKENS - tokens.shape[1]
    return np.pad(tokens, [(0, 0), (0, missing)], constant_values=end), None


def decode(read, text, ends, num_beams=1, length_penalty=1, **options):
    """What the oracle finds, and the logits of its tokens."""
    penalty = options.get("repetition_penalty", 1.0)
    if num_beams == 1:
        return decoding.choose_likeliest(
            read, text, NEW_TOKENS, ends=ends, penalty=penalty
        )
    others = {"ends": ends, "power": length_penalty, "penalty": penalty}
    return decoding.search(read, text, NEW_TOKENS, num_beams, **others), None


@pytest.mark.parametrize(
    ("subject", "method", "way", "side", "ends", "compiled"), ROWS
)
def test_decoding(subject, method, way, side, ends, compiled):
    model, options = SUBJECTS[subject](), METHODS[method]
    source, texts = model, [[], [], []]
    if way == "conversation":
        source = model.start_conversation(max_length=MAX_LENGTH)
    given = {**options, **({"end_token": [*ends]} if ends else {})}
    turns = list(zip(TURNS, LENGTHS, strict=True))
    for prompts, lengths in turns if way == "conversation" else turns[:1]:
        batch, counts = pad(prompts, lengths, side)
        with contextlib.nullcontext() if compiled else eagerly():
            tokens, logits = run(
                *(source, way, as_target(model, batch)),
                **given,
                jit_compile=compiled,
            )
        assert tokens.dtype == np.int32
        for row, text in enumerate(texts):
            text += [*prompts[row, : counts[row]]]
            total = len(text) + NEW_TOKENS
            total = MAX_LENGTH if way == "conversation" else total
            read = reader(model, row, total)
            expected, every = decode(read, text, ends, **options)
            assert [*tokens[row]] == decoding.fill(expected, NEW_TOKENS, ends)
            if logits is not None:
                np.testing.assert_allclose(
                    logits[row, : len(every)], every, rtol=1e-3, atol=1e-3
                )
            text += expected


@pytest.fixture(scope="module")
def rope():
    """A decoder for tests that share its programs."""
    return SUBJECTS["rotation"]()


def test_nothing_is_computed_after_the_last_end(rope):
    """Logits are zeros then."""
    options = {"end_token": [*range(VOCABULARY_SIZE)], "jit_compile": False}
    _, logits = rope.generate(PROMPTS, 3, return_logits=True, **options)
    assert (logits[:, 0] != 0).any()
    assert (logits[:, 1:] == 0).all()
    assert len([*rope.stream(PROMPTS, 50, **options)]) == 1


@pytest.mark.parametrize(
    ("subject", "given"),
    [
        ("rotation", {"positions": np.arange(9) ** 2}),
        ("length", {"reference_length": 100}),
    ],
    ids=["positions", "reference length"],
)
def test_inputs_hold_for_new_tokens(subject, given):
    model, inputs = SUBJECTS[subject](), {"token_ids": PROMPTS, **given}
    with eagerly():
        tokens, logits = model.generate(inputs, 4, return_logits=True)
        _, others = model.generate(PROMPTS, 4, return_logits=True)
    whole = {**inputs, "token_ids": np.append(PROMPTS, tokens, axis=1)}
    np.testing.assert_allclose(model(whole)[:, 4:-1], logits, atol=1e-3)
    assert not np.allclose(logits, others, atol=1e-2)


def test_programs_are_compiled_once_for_a_shape():
    model = SUBJECTS["rotation"]()
    for lengths in ([5, 5, 5], [1, 2, 3]):
        inputs = {"token_ids": PROMPTS, "lengths": np.array(lengths)}
        for temperature in (0.5, 1.0):
            model.generate(
                inputs, 4, temperature=temperature, jit_compile=False
            )
    (program,) = model.programs._programs.values()
    assert program.start.experimental_get_tracing_count() == 1
    assert program.advance.experimental_get_tracing_count() == 1
    # They read the weights of the moment.
    before = model.generate(inputs, 4, temperature=1.0, jit_compile=False)
    model.set_weights([-2 * weight for weight in model.get_weights()])
    after = model.generate(inputs, 4, temperature=1e-9, jit_compile=False)
    assert [program] == [*model.programs._programs.values()]
    assert (before != after).any()
    with eagerly():
        np.testing.assert_array_equal(after, model.generate(inputs, 4))


DRAWS = 4000
SAMPLED = {
    "plain": {},
    "hottest": {"temperature": 3e38},
    "all": {"top_p": 1.0},
    "both": {"top_k": 4, "top_p": 0.8, "temperature": 2.0},
    "penalty": {"repetition_penalty": 3.0},
}


@pytest.fixture(scope="module")
def flat():
    """A decoder that finds every token likely."""
    model = SUBJECTS["rotation"]()
    for weight in model.head.weights:
        weight.assign(0.4 * weight)
    return model


@pytest.mark.parametrize("name", SAMPLED)
def test_tokens_are_sampled_by_their_probability(name, flat):
    options = {"temperature": 1.0, **SAMPLED[name]}
    inputs = np.repeat(PROMPTS[:1], DRAWS, axis=0)
    with eagerly():
        tokens = flat.generate(inputs, 1, seed=3, **options)[:, 0]
    logits = reader(flat, 0, 5)([PROMPTS[0]])[0]
    penalty = options.pop("repetition_penalty", 1.0)
    logits = decoding.penalize(logits, PROMPTS[0], penalty)
    expected = DRAWS * decoding.find_shares(logits, **options)
    found = np.bincount(tokens, minlength=VOCABULARY_SIZE)
    assert not found[expected == 0].any()
    possible = expected > 0
    excess = (found - expected)[possible] ** 2 / expected[possible]
    # At most 8 degrees of freedom: above 35 once in 37,000 times.
    assert excess.sum() < 35


@pytest.fixture
def failing():
    """A decoder that chooses token 5, and then finds no numbers."""
    model = make(RoPE())
    embeddings = ops.convert_to_numpy(model.embedding.embeddings).copy()
    embeddings[5] = np.nan
    model.embedding.embeddings.assign(embeddings)
    model.head.kernel.assign(ops.zeros_like(model.head.kernel))
    model.head.bias.assign(np.eye(VOCABULARY_SIZE)[5] * 30)
    return model


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"repetition_penalty": 1.5, "return_logits": True},
        {"temperature": 1.0, "top_k": 3, "top_p": 0.9},
        {"num_beams": 2},
    ],
    ids=lambda options: "-".join(options),
)
def test_logits_that_are_no_numbers_raise(failing, options):
    prompts = np.ones((2, 3), "int32")
    message = "new token 1 of row 0 .*: check the weights"
    with eagerly():
        with pytest.raises(ValueError, match=message):
            failing.generate(prompts, 3, **options)
        # Nothing reads the end of a row.
        ended = {**options, "return_logits": False, "end_token": 5}
        found = failing.generate(prompts, 3, **ended)
        np.testing.assert_array_equal(found, np.full((2, 3), 5))
        prompts[1, 2] = 5
        with pytest.raises(ValueError, match="new token 0 of row 1 "):
            failing.generate(prompts, 3, **options)


def test_a_stream_ends_where_logits_are_no_numbers(failing):
    with eagerly():
        stream = failing.stream(np.ones((2, 3), "int32"), 3)
        np.testing.assert_array_equal(next(stream), [5, 5])
        with pytest.raises(ValueError, match="new token 1 of row 0 "):
            next(stream)


@pytest.mark.parametrize(
    "encoding",
    [LearnedEncoding(max_position=8), RandomizedRoPE(max_position=8)],
)
def test_prompts_and_new_tokens_need_a_position_each(encoding):
    model = make(encoding)
    with eagerly():
        model.generate(PROMPTS, 3)
        with pytest.raises(ValueError, match="max_position"):
            model.generate(PROMPTS, 4)


def test_outputs_must_be_inputs_to_go_on():
    model = make(output_size=VOCABULARY_SIZE + 1)
    with eagerly():
        assert model.generate(ops.convert_to_tensor(PROMPTS), 1).shape == (3, 1)
    with pytest.raises(ValueError, match="output_size=10 is larger than"):
        model.generate(PROMPTS, 2)


WRONG = [
    ({}, {"top_k": 3}, "top_k=3 .* temperature=0: .* such as 1.0"),
    ({}, {"num_beams": 2, "return_logits": True}, "leave return_logits out"),
    ({}, {"num_beams": 2, "top_k": 3}, "leave one of them out"),
    ({"positions": np.arange(5)}, {}, "one number for each token: got 5 for 9"),
    ({"segment_ids": PROMPTS}, {}, "a row continues with one"),
    ({"length": 4}, {}, "not have the key 'length': did you mean lengths"),
]


@pytest.mark.parametrize(("inputs", "options", "message"), WRONG)
def test_wrong_arguments_raise(rope, inputs, options, message):
    options = {"max_new_tokens": 4, **options}
    inputs = {"token_ids": PROMPTS, **inputs}
    with pytest.raises(ValueError, match=message):
        rope.generate(inputs, **options)
    # A stream checks before it is read.
    if "num_beams" in options:
        message = "num_beams=. finds the first token with"
    with pytest.raises(ValueError, match=message):
        rope.stream(inputs, **options)


def test_a_seed_repeats_the_draw(flat):
    def draw(seed):
        return flat.generate(
            np.repeat(PROMPTS[:1], 50, axis=0),
            20,
            temperature=3.0,
            seed=seed,
            jit_compile=False,
        )

    tokens = draw(1)
    np.testing.assert_array_equal(draw(1), tokens)
    assert (draw(2) != tokens).any()
    assert (draw(None) != draw(None)).any()
    # Examples and steps draw apart.
    assert len({tuple(row) for row in tokens}) == 50
    assert all(len({*row}) > 1 for row in tokens)


@pytest.mark.parametrize("length_penalty", [0.0, 1000.0, 3.4e38])
def test_beams_are_sequences_that_exist(rope, length_penalty):
    """Also where all end at once, and beams are more than sequences."""
    ends = [3, *range(3), *range(4, VOCABULARY_SIZE)]
    options = {"num_beams": 8, "length_penalty": length_penalty}
    with eagerly():
        found = rope.generate(PROMPTS, 3, end_token=ends, **options)
        likeliest = rope.generate(PROMPTS, 1)
    np.testing.assert_array_equal(found[:, :1], likeliest)
    np.testing.assert_array_equal(found[:, 1:], 3)
