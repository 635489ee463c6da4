"""Beam search, against searches of every sequence and in plain Python."""

import itertools

import numpy as np
import pytest

from keras_lengen.layers import ALiBi, RandomizedRoPE, RoPE
from keras_lengen.models import (
    EncoderDecoder,
    LoopedDecoder,
    TransformerDecoder,
)
from tests.keras_lengen.models.small import eagerly
from tests.products import product

VOCABULARY_SIZE, NEW_TOKENS = 4, 3
PROMPTS = np.array([[1, 2, 3, 0], [3, 3, 1, 2], [2, 0, 0, 1]], "int32")
LENGTHS = np.array([4, 2, 3])
SHAPE = {
    "vocabulary_size": VOCABULARY_SIZE,
    "num_layers": 2,
    "num_heads": 2,
    "model_dim": 16,
    "feedforward_dim": 8,
}


def spread(model):
    """Makes the logits differ from each other, and from prompt to prompt."""
    generator = np.random.default_rng(1)
    model.set_weights(
        [generator.normal(size=weight.shape) / 2 for weight in model.weights]
    )
    return model


@pytest.fixture(scope="module")
def model():
    return spread(TransformerDecoder(**SHAPE, encoding=RoPE()))


@pytest.fixture(scope="module")
def flat_model():
    """One that finds no token very likely, so that lengths matter."""
    model = spread(TransformerDecoder(**SHAPE, encoding=RoPE()))
    for weight in model.head.weights:
        weight.assign(0.2 * weight)
    return model


def log_chances(logits):
    logits = np.asarray(logits, "float64")
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def cut(tokens, ends):
    """Tokens up to the first end token, and filled with the first one."""
    tokens = list(tokens)
    for step, token in enumerate(tokens):
        if token in ends:
            fill = [ends[0]] * (len(tokens) - step - 1)
            return tuple(tokens[: step + 1] + fill), step + 1
    return tuple(tokens), len(tokens)


def best_of_all(model, prompt, ends, length_penalty):
    """The best of all sequences, each computed by a pass over all tokens."""
    sequences = {
        cut(tokens, ends)
        for tokens in itertools.product(
            range(VOCABULARY_SIZE), repeat=NEW_TOKENS
        )
    }
    tokens, lengths = map(np.array, zip(*sorted(sequences), strict=True))
    whole = np.concatenate([np.tile(prompt, (len(tokens), 1)), tokens], axis=1)
    chances = log_chances(model(whole))[:, len(prompt) - 1 : -1]
    chances = np.take_along_axis(chances, tokens[..., None], axis=-1)[..., 0]
    counted = np.arange(NEW_TOKENS) < lengths[:, None]
    scores = (chances * counted).sum(axis=1) / lengths**length_penalty
    order = np.argsort(-scores)
    # No tie that rounding could decide.
    assert scores[order[0]] > scores[order[1]] + 1e-4
    return tokens[order[0]]


@pytest.mark.parametrize(
    ("ends", "length_penalty"),
    product(
        itertools.product((None, 2, [3, 0]), (0.0, 1.0, 2.5)),
        keep=[(None, 0.0), (2, 2.5), ([3, 0], 1.0)],
    ),
)
def test_with_enough_beams_it_finds_the_best_of_all(
    flat_model, ends, length_penalty
):
    found = flat_model.generate(
        PROMPTS,
        NEW_TOKENS,
        num_beams=VOCABULARY_SIZE**NEW_TOKENS,
        length_penalty=length_penalty,
        end_token=ends,
        jit_compile=False,
    )
    ends = ends if isinstance(ends, list) else [-1 if ends is None else ends]
    for prompt, tokens in zip(PROMPTS, found, strict=True):
        expected = best_of_all(flat_model, prompt, ends, length_penalty)
        np.testing.assert_array_equal(tokens, expected)


def test_a_larger_length_penalty_finds_longer_sequences(flat_model):
    lengths = []
    for penalty in (0.0, 1.0, 2.5, 1000.0, 3.4e38):
        found = flat_model.generate(
            *(PROMPTS, NEW_TOKENS),
            num_beams=VOCABULARY_SIZE**NEW_TOKENS,
            length_penalty=penalty,
            end_token=[3, 0],
            jit_compile=False,
        )
        lengths.append(sum(cut(tokens, [3, 0])[1] for tokens in found))
    assert lengths[0] < lengths[-1]
    assert lengths == sorted(lengths)
    assert lengths[-1] == NEW_TOKENS * len(PROMPTS)


@pytest.mark.parametrize("length_penalty", [0.0, 1000.0, 3.4e38])
def test_a_search_finds_sequences_that_exist(flat_model, length_penalty):
    options = {"length_penalty": length_penalty, "jit_compile": False}
    # All sequences end at once, and there are more beams than sequences.
    found = flat_model.generate(
        PROMPTS, NEW_TOKENS, num_beams=6, end_token=[3, 0, 1, 2], **options
    )
    likeliest = flat_model.generate(PROMPTS, 1, jit_compile=False)
    np.testing.assert_array_equal(found[:, :1], likeliest)
    np.testing.assert_array_equal(found[:, 1:], 3)


def test_ties_and_forbidden_tokens():
    model = TransformerDecoder(**SHAPE, encoding=RoPE())
    model.head.kernel.assign(np.zeros(model.head.kernel.shape))
    model.head.bias.assign(np.array([-np.inf, 2.0, 1.0, 2.0]))
    for beams in (1, 2, 5):
        found = model.generate(
            PROMPTS, NEW_TOKENS, num_beams=beams, jit_compile=False
        )
        np.testing.assert_array_equal(found, np.ones_like(found))


def search(model, prompt, beams, ends, length_penalty, penalty=1.0):
    """Beam search in plain Python, with a full pass for every token."""
    going, ended = [(0.0, [])], []
    for step in range(1, 6):
        ways = []
        for score, tokens in going:
            text = [*prompt, *tokens]
            logits = np.array(model(np.array([text]))[0, -1], "float64")
            for seen in set(text):
                logits[seen] *= penalty if logits[seen] < 0 else 1 / penalty
            ways += [
                (score + chance, [*tokens, token])
                for token, chance in enumerate(log_chances(logits))
            ]
        ways.sort(reverse=True)
        ended += [
            (score / step**length_penalty, tokens)
            for score, tokens in ways
            if tokens[-1] in ends
        ][:beams]
        going = [way for way in ways if way[1][-1] not in ends][:beams]
    ended += [(score / 5**length_penalty, tokens) for score, tokens in going]
    _, best = max(ended)
    return best + [ends[0]] * (5 - len(best))


@pytest.mark.product
@pytest.mark.parametrize(
    ("beams", "penalty"),
    product(itertools.product([2, 3], [1.0, 1.7]), keep=[(3, 1.7)]),
)
def test_few_beams_find_what_plain_python_finds(model, beams, penalty):
    options = {"length_penalty": 0.6, "repetition_penalty": penalty}
    found = model.generate(
        PROMPTS,
        5,
        num_beams=beams,
        end_token=[2, 1],
        jit_compile=False,
        **options,
    )
    for prompt, tokens in zip(PROMPTS, found, strict=True):
        expected = search(model, prompt, beams, [2, 1], 0.6, penalty)
        np.testing.assert_array_equal(tokens, expected)


@pytest.mark.product
def test_compiled_is_not_compiled(model):
    options = {"num_beams": 3, "end_token": 2}
    inputs = {"token_ids": PROMPTS, "lengths": LENGTHS}
    np.testing.assert_array_equal(
        model.generate(inputs, 5, **options),
        model.generate(inputs, 5, **options, jit_compile=False),
    )


def assert_prompts_continue_as_alone(model, others=None, **options):
    """Asserts that a batch of unequal lengths finds what each prompt does."""
    others = others or {}
    options = {"num_beams": 3, "jit_compile": False, **options}
    with eagerly():
        batched = model.generate(
            {"token_ids": PROMPTS, "lengths": LENGTHS, **others}, 5, **options
        )
    for row, length in enumerate(LENGTHS):
        single = {
            "token_ids": PROMPTS[row : row + 1, :length],
            **{name: each[row : row + 1] for name, each in others.items()},
        }
        with eagerly():
            (alone,) = model.generate(single, 5, **options)
        np.testing.assert_array_equal(alone, batched[row])


@pytest.mark.product
@pytest.mark.parametrize(
    ("encoding", "window"),
    [
        (ALiBi(), None),
        (RandomizedRoPE(max_position=32, evaluation="even"), None),
        (ALiBi(), 3),
    ],
    ids=["ALiBi", "own positions", "window"],
)
def test_prompts_of_unequal_lengths(encoding, window):
    model = spread(
        TransformerDecoder(
            **SHAPE,
            encoding=encoding,
            num_key_value_heads=1,
            sliding_window=window,
            draw="layer",
        )
    )
    assert_prompts_continue_as_alone(model, end_token=2)


@pytest.mark.product
def test_loops_of_each_prompt():
    model = spread(LoopedDecoder(**SHAPE, loops=3))
    loops = {"loops": np.array([1, 3, 2])}
    assert_prompts_continue_as_alone(model, loops)


@pytest.mark.product
@pytest.mark.parametrize("given", ["shared", "own"])
def test_each_source_is_read_once(given):
    model = spread(
        EncoderDecoder(**SHAPE, encoding=RoPE(), cross_encoding=ALiBi())
    )
    # As many tokens as sources: axes must not be taken for each other.
    sources = np.array([[1, 2, 0], [3, 3, 3], [0, 1, 2]])
    positions = np.array([0, 4, 9])
    positions = {"shared": positions, "own": positions + LENGTHS[:, None]}[
        given
    ]
    inputs = {
        "token_ids": sources,
        "positions": positions,
        "lengths": np.array([3, 1, 2]),
        "target_ids": PROMPTS[:, :2],
    }
    options = {"num_beams": 3, "end_token": 2, "jit_compile": False}
    found = model.generate(inputs, 4, **options)
    for row in range(3):
        single = {
            name: each
            if each.shape == (3,) and name == "positions"
            else each[row : row + 1]
            for name, each in inputs.items()
        }
        with eagerly():
            (alone,) = model.generate(single, 4, **options)
        np.testing.assert_array_equal(alone, found[row])


@pytest.mark.product
def test_half_precision_finds_a_likely_sequence(model):
    half = TransformerDecoder(**SHAPE, encoding=RoPE(), dtype="mixed_bfloat16")
    half.set_weights(model.get_weights())
    tokens = half.generate(PROMPTS, 5, num_beams=3, jit_compile=False)
    greedy = half.generate(PROMPTS, 5, jit_compile=False)

    def score(tokens):
        whole = np.concatenate([PROMPTS, tokens], axis=1)
        chances = log_chances(model(whole))[:, 3:-1]
        return np.take_along_axis(chances, tokens[..., None], -1).sum((1, 2))

    assert (score(tokens) >= score(greedy) - 0.1).all()
    assert score(tokens).sum() > score(greedy).sum() - 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_beams": 0}, "num_beams must be a positive integer; got 0"),
        ({"num_beams": 2, "temperature": 1.0}, "temperature=0 instead of 1"),
        ({"num_beams": 2, "return_logits": True}, "leave return_logits out"),
        ({"num_beams": 2, "top_k": 3}, "leave one of them out"),
        ({"length_penalty": 2.0}, "length_penalty=2.0 .* num_beams above 1"),
        ({"num_beams": 2, "length_penalty": -1}, "length_penalty .*least 0"),
    ],
)
def test_wrong_options_raise(model, options, message):
    with pytest.raises(ValueError, match=message):
        model.generate(PROMPTS, 2, **options)


def test_a_search_is_no_stream(model):
    with pytest.raises(ValueError, match="num_beams=2 finds the first token"):
        model.stream(PROMPTS, 2, num_beams=2)
