"""End tokens and the penalty of repeated tokens."""

import numpy as np
import pytest
from keras import ops

from keras_lengen.layers import RoPE
from keras_lengen.models import TransformerDecoder
from keras_lengen.models.token_choice import find_seen, penalize
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
    found = penalize(logits, seen, np.float32(4.0))
    np.testing.assert_allclose(found, [[0.5, -8.0, 0.5, -0.5]])
    largest = penalize(*map(ops.convert_to_tensor, (logits, seen, 3e38)))
    assert np.isfinite(largest).all()


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
