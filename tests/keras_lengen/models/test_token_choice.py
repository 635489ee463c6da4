"""Sampling, end tokens and the penalty of repeated tokens."""

import numpy as np
import pytest
from keras import ops

from keras_lengen.layers import RoPE
from keras_lengen.models import TransformerDecoder
from keras_lengen.models.programs import compile_function
from keras_lengen.models.token_choice import (
    RANDOM_NUMBERS,
    are_valid,
    find_largest,
    find_seen,
    penalize,
    sample_tokens,
)
from tests.keras_lengen.models.small import MODELS, VOCABULARY_SIZE, inputs
from tests.products import product

PROMPTS = np.array([[1, 2, 3, 7], [6, 5, 1, 2], [2, 7, 7, 1]], "int32")
LENGTHS = np.array([4, 2, 3])


@pytest.fixture(scope="module")
def model():
    model = TransformerDecoder(
        vocabulary_size=9,
        num_layers=2,
        num_heads=2,
        model_dim=16,
        encoding=RoPE(),
    )
    generator = np.random.default_rng(1)
    model.set_weights(
        [generator.normal(size=weight.shape) / 2 for weight in model.weights]
    )
    return model


def choose(logits, draws=400, program=sample_tokens, **options):
    """Tokens for evenly spaced numbers instead of random ones."""
    numbers = np.linspace(0, RANDOM_NUMBERS - 1, draws).astype("int32")
    logits = np.tile(np.float32(logits), (draws, 1))
    options = {"temperature": 1.0, "top_k": None, "top_p": None, **options}
    tokens = program(*map(ops.convert_to_tensor, (logits, numbers)), **options)
    return ops.convert_to_numpy(tokens)


def test_of_equal_tokens_the_first_ones_are_kept():
    for kept in range(1, 10):
        first = set(range(kept))
        assert set(choose(np.zeros(10), top_k=kept)) == first
        assert set(choose(np.zeros(10), top_p=kept / 10)) == first
    assert set(choose([0.0, 2.0, 1.0, 2.0, 2.0], top_k=2)) == {1, 3}
    scores = ops.convert_to_tensor(np.float32([[0, 2, 1, 2, 2, 0, 0]]))
    indices = ops.convert_to_numpy(find_largest(scores, 6)[1])
    np.testing.assert_array_equal(indices, [[1, 3, 4, 2, 0, 5]])


@pytest.mark.parametrize("shift", [0, -64])
def test_rounding_adds_no_token(shift):
    logits = shift + np.log([0.5, 0.3, 0.1, 0.1])
    assert set(choose(logits, top_p=0.8)) == {0, 1}
    # The last number chooses the last token.
    assert choose(np.full(20_000, shift), 2, top_p=0.3)[-1] == 5999
    many = shift + np.log([0.5, *np.full(60_000, 0.5 / 60_000)])
    assert choose(many, 2, top_p=0.5)[-1] == 0
    assert choose(many, 2, top_p=0.75)[-1] == 30_000


def test_tokens_have_their_probability_among_those_that_are_kept():
    shares = np.array([0.1, 0.4, 0.2, 0.3])
    for options, kept in (
        ({}, [0, 1, 2, 3]),
        ({"top_k": 3}, [1, 2, 3]),
        ({"top_p": 0.75}, [1, 2, 3]),
        # Tokens 1 and 3 have 0.78 of the probability of the three.
        ({"top_k": 3, "top_p": 0.75}, [1, 3]),
    ):
        counts = np.bincount(choose(np.log(shares), **options), minlength=4)
        expected = np.where(np.isin(np.arange(4), kept), shares, 0)
        np.testing.assert_allclose(
            counts / 400, expected / expected.sum(), atol=1.01 / 400
        )


@pytest.mark.parametrize("temperature", [1.2e-38, 1.0, 3e38])
def test_forbidden_tokens_are_never_chosen(temperature):
    logits = [-np.inf, 2.0, -np.inf, 2.0]
    for options in ({}, {"top_k": 3}, {"top_p": 0.9}):
        found = choose(logits, temperature=temperature, **options)
        assert set(found) == {1, 3}


@pytest.mark.product
def test_compiled_programs_choose_no_other_token():
    logits = 3 * np.random.default_rng(0).normal(size=50_000)
    ranks = np.argsort(np.argsort(-logits))

    def program(logits, numbers, **options):
        return compile_function(
            lambda *tensors: sample_tokens(*tensors, **options), [], True
        )(logits, numbers)

    found = choose(logits, 64, program, top_k=5000)
    assert ranks[found].max() < 5000
    found = choose(logits, 64, program, top_p=0.5)
    shares = np.sort(np.exp(logits))[::-1] / np.exp(logits).sum()
    assert ranks[found].max() == np.searchsorted(np.cumsum(shares), 0.5)


def test_valid_logits_have_a_token_to_choose():
    inf = np.inf
    rows = [[0, 1], [-inf, 1], [np.nan, 1], [inf, 1], [-inf, -inf]]
    found = are_valid(ops.convert_to_tensor(np.float32(rows)))
    assert [*map(bool, found)] == [True, True, False, False, False]


@pytest.mark.parametrize(
    "dtype", product(["bfloat16", "float16"], ["bfloat16"])
)
@pytest.mark.parametrize("name", MODELS)
def test_logits_of_tied_embeddings_are_float32(name, dtype):
    model = MODELS[name](
        output_size=VOCABULARY_SIZE, tie_embeddings=True, dtype=dtype
    )
    logits = model(inputs(model, np.arange(VOCABULARY_SIZE)[None]))
    rounded = ops.cast(ops.cast(logits, dtype), "float32")
    logits = ops.convert_to_numpy(logits)
    assert logits.dtype == "float32"
    assert (ops.convert_to_numpy(rounded) == logits).mean() < 0.2


def test_any_of_several_tokens_ends_a_sequence(model):
    free = model.generate(PROMPTS, 8, jit_compile=False)
    ends = [int(free[0, 2]), int(free[1, 4])]
    ended = model.generate(PROMPTS, 8, end_token=ends, jit_compile=False)
    lengths = set()
    for row, full in zip(ended, free, strict=True):
        (hits,) = np.nonzero(np.isin(full, ends))
        length = hits[0] + 1 if len(hits) else 8
        lengths.add(length)
        np.testing.assert_array_equal(row[:length], full[:length])
        np.testing.assert_array_equal(row[length:], ends[0])
    assert min(lengths) < 8
    one = model.generate(PROMPTS, 8, end_token=ends[:1], jit_compile=False)
    np.testing.assert_array_equal(
        one, model.generate(PROMPTS, 8, end_token=ends[0], jit_compile=False)
    )


def test_a_stream_ends_at_the_last_end_token(model):
    inputs = {"token_ids": PROMPTS, "lengths": LENGTHS}
    ends = [*range(9)]
    (only,) = model.stream(inputs, 8, end_token=ends, jit_compile=False)
    expected = model.generate(inputs, 8, end_token=ends, jit_compile=False)
    np.testing.assert_array_equal(only, expected[:, 0])
    assert (expected[:, 1:] == 0).all()


def test_a_penalty_is_that_of_ctrl():
    logits = np.array([[2.0, -2.0, 0.5, -0.5]], "float32")
    seen = np.array([[True, True, False, False]])

    def penalized(logits, penalty):
        tensors = map(ops.convert_to_tensor, (logits, seen, penalty))
        return ops.convert_to_numpy(penalize(*tensors))

    found = penalized(logits, 4.0)
    np.testing.assert_allclose(found, [[0.5, -8.0, 0.5, -0.5]])
    assert np.isfinite(penalized(logits, 3e38)).all()
    # A forbidden token remains so.
    assert np.isneginf(penalized(np.full_like(logits, -np.inf), 4.0)).all()


def test_seen_are_the_real_tokens():
    mask = np.arange(4) < LENGTHS[:, None]
    # Of nine tokens, the outputs are only the first seven.
    found = [set(np.flatnonzero(row)) for row in find_seen(PROMPTS, mask, 7)]
    assert found == [{1, 2, 3}, {5, 6}, {2}]
    found = [set(np.flatnonzero(row)) for row in find_seen(PROMPTS, None, 9)]
    assert found == [{1, 2, 3, 7}, {1, 2, 5, 6}, {1, 2, 7}]


def greedy(model, prompt, penalty, new_tokens):
    """Greedy generation in plain Python, with a full pass for each token."""
    text = [*prompt]
    for _ in range(new_tokens):
        logits = np.array(model(np.array([text]))[0, -1], "float64")
        for seen in set(text):
            logits[seen] *= penalty if logits[seen] < 0 else 1 / penalty
        text.append(int(logits.argmax()))
    return text[len(prompt) :]


@pytest.mark.parametrize("penalty", product([0.4, 1.5, 1e9], keep=[1.5]))
def test_repeated_tokens_are_penalized(model, penalty):
    inputs = {"token_ids": PROMPTS, "lengths": LENGTHS}
    options = {"repetition_penalty": penalty, "jit_compile": False}
    found = model.generate(inputs, 4, **options)
    for prompt, length, tokens in zip(PROMPTS, LENGTHS, found, strict=True):
        expected = greedy(model, prompt[:length], penalty, 4)
        np.testing.assert_array_equal(tokens, expected)
    streamed = [*model.stream(inputs, 4, **options)]
    np.testing.assert_array_equal(np.stack(streamed, axis=1), found)


def test_returned_logits_have_no_penalty(model):
    tokens, logits = model.generate(
        PROMPTS,
        4,
        repetition_penalty=5.0,
        return_logits=True,
        jit_compile=False,
    )
    whole = np.concatenate([PROMPTS, tokens], axis=1)
    expected = np.asarray(model(whole))[:, 3:-1]
    np.testing.assert_allclose(logits, expected, atol=1e-4)


def test_a_penalty_changes_what_is_sampled(model):
    prompts = np.repeat(PROMPTS[:1], 2000, axis=0)
    found = model.generate(
        *(prompts, 1),
        repetition_penalty=3.0,
        temperature=1.0,
        seed=3,
        jit_compile=False,
    )
    logits = np.array(model(PROMPTS[:1])[0, -1], "float64")
    seen = logits[PROMPTS[0]]
    logits[PROMPTS[0]] = np.where(seen > 0, seen / 3, seen * 3)
    expected = np.exp(logits) * 2000 / np.exp(logits).sum()
    counts = np.bincount(found[:, 0], minlength=9)
    # 8 degrees of freedom: above 35 once in 37,000 times.
    assert ((counts - expected) ** 2 / expected).sum() < 35


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repetition_penalty": 0}, "repetition_penalty .*above 0; got 0"),
        ({"end_token": 9}, "end_token .*from 0 to 8, or a tuple .*; got 9"),
        ({"end_token": []}, "end_token .*a tuple of one or more"),
        ({"end_token": [1, 9]}, "end_token .*from 0 to 8, or .*; got"),
    ],
)
def test_wrong_options_raise(model, options, message):
    with pytest.raises(ValueError, match=message):
        model.generate(PROMPTS, 2, **options)
