"""Beam search, against searches of every sequence.

`test_generation.py` compares it with a search in plain NumPy.
"""

import itertools

import numpy as np
import pytest

from keras_lengen.layers import ALiBi, RoPE
from keras_lengen.models import (
    EncoderDecoder,
    LoopedDecoder,
    TransformerDecoder,
)
from tests.keras_lengen.models.decoding import cut, fill, log_chances
from tests.keras_lengen.models.small import eagerly, with_random_weights

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
ALL = VOCABULARY_SIZE**NEW_TOKENS
"""As many beams as there are sequences."""


@pytest.fixture(scope="module")
def model():
    """A decoder that finds no token very likely, so that lengths matter."""
    model = with_random_weights(TransformerDecoder(**SHAPE, encoding=RoPE()))
    for weight in model.head.weights:
        weight.assign(0.3 * weight)
    return model


def best_of_all(model, prompt, ends, length_penalty):
    """The best of all sequences, each computed by a pass over all tokens."""
    every = itertools.product(range(VOCABULARY_SIZE), repeat=NEW_TOKENS)
    sequences = sorted({tuple(cut(tokens, ends)) for tokens in every})
    tokens = np.array([fill(each, NEW_TOKENS, [0]) for each in sequences])
    lengths = np.array([len(each) for each in sequences])
    whole = np.concatenate([np.tile(prompt, (len(tokens), 1)), tokens], axis=1)
    chances = log_chances(model(whole))[:, len(prompt) - 1 : -1]
    chances = np.take_along_axis(chances, tokens[..., None], axis=-1)[..., 0]
    counted = np.arange(NEW_TOKENS) < lengths[:, None]
    scores = (chances * counted).sum(axis=1) / lengths**length_penalty
    second, first = np.argsort(scores)[-2:]
    # No tie that rounding could decide.
    assert scores[first] > scores[second] + 1e-4
    return [*sequences[first]]


@pytest.mark.parametrize(
    ("ends", "length_penalty"),
    [((), 0.0), ((2,), 2.5), ((3, 0), 1.0)],
)
def test_with_enough_beams_it_finds_the_best_of_all(
    model, ends, length_penalty
):
    with eagerly():
        found = model.generate(
            PROMPTS,
            NEW_TOKENS,
            num_beams=ALL,
            length_penalty=length_penalty,
            end_token=ends or None,
        )
    for prompt, tokens in zip(PROMPTS, found, strict=True):
        expected = best_of_all(model, prompt, ends, length_penalty)
        assert [*tokens] == fill(expected, NEW_TOKENS, ends)


def test_a_larger_length_penalty_finds_longer_sequences(model):
    lengths = []
    for penalty in (0.0, 1.0, 2.5, 1000.0, 3.4e38):
        with eagerly():
            found = model.generate(
                *(PROMPTS, NEW_TOKENS),
                num_beams=ALL,
                length_penalty=penalty,
                end_token=[3, 0],
            )
        lengths.append(sum(len(cut(tokens, [3, 0])) for tokens in found))
    assert lengths[0] < lengths[-1]
    assert lengths == sorted(lengths)
    assert lengths[-1] == NEW_TOKENS * len(PROMPTS)


def test_ties_and_forbidden_tokens():
    model = TransformerDecoder(**SHAPE, encoding=RoPE())
    model.head.kernel.assign(np.zeros(model.head.kernel.shape))
    model.head.bias.assign(np.array([-np.inf, 2.0, 1.0, 2.0]))
    for beams in (1, 2, 5):
        with eagerly():
            found = model.generate(PROMPTS, NEW_TOKENS, num_beams=beams)
        np.testing.assert_array_equal(found, np.ones_like(found))


SOURCES = {
    # As many tokens as sources: axes must not be taken for each other.
    "token_ids": np.array([[1, 2, 0], [3, 3, 3], [0, 1, 2]]),
    "lengths": np.array([3, 1, 2]),
    "target_ids": PROMPTS[:, :2],
}
SHARED = np.array([0, 4, 9])


@pytest.mark.product
@pytest.mark.parametrize(
    "given",
    [
        "loops",
        pytest.param("shared positions", marks=pytest.mark.product),
        pytest.param("own positions", marks=pytest.mark.product),
    ],
)
def test_what_each_prompt_has_stays_with_its_beams(given):
    if given == "loops":
        model = LoopedDecoder(**SHAPE, loops=3)
        inputs = {
            "token_ids": PROMPTS,
            "lengths": LENGTHS,
            "loops": np.array([1, 3, 2]),
        }
    else:
        model = EncoderDecoder(**SHAPE, encoding=RoPE(), cross_encoding=ALiBi())
        own = given == "own positions"
        positions = SHARED + LENGTHS[:, None] if own else SHARED
        inputs = {**SOURCES, "positions": positions}
    with_random_weights(model)
    options = {"num_beams": 3, "end_token": 2}
    with eagerly():
        found = model.generate(inputs, 4, **options)
        for row, expected in enumerate(found):
            single = {
                name: each if each is SHARED else each[row : row + 1]
                for name, each in inputs.items()
            }
            (alone,) = model.generate(single, 4, **options)
            np.testing.assert_array_equal(alone, expected)
