"""Samplers whose positions are not those of a range: fractions of tokens."""

import collections
import math

import numpy as np
import pytest
from scipy import stats

from keras_lengen.layers import (
    CAPE,
    AugmentedPositions,
    InterpolatedPositions,
    SinusoidalEncoding,
    WarpedPositions,
)
from tests.datasets.tasks.chi_square import (
    assert_counts_follow,
    assert_drawn_from,
)

DRAWS = 4000
NONE = {"max_global_shift": 0, "max_local_shift": 0, "max_global_scale": 1}
TAIL = {"head_fraction": 0, "tail_fraction": 1}


def place(sampler, tokens, batch_size=2, **call):
    positions = np.asarray(sampler(np.zeros((batch_size, tokens)), **call))
    assert positions.dtype == "float32"
    return positions


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("tokens", [1, 19, 20, 21, 50, 1000])
def test_longer_sequences_fill_the_trained_range(tokens, training):
    sampler = InterpolatedPositions(train_length=20)
    result = place(sampler, tokens, training=training)
    expected = np.arange(tokens) * min(1, 20 / tokens)
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def warp(tokens, batch_size=1, lengths=None, **arguments):
    sampler = WarpedPositions(**{"train_length": 20, "seed": 1, **arguments})
    return place(sampler, tokens, batch_size, lengths=lengths, training=True)


@pytest.mark.parametrize(
    ("skew", "function"), [("sqrt", math.sqrt), ("beta", stats.beta(2, 5).cdf)]
)
def test_tails_go_by_the_true_length_and_keep_order(skew, function):
    lengths = np.array([25, 7, 1])
    result = warp(25, 3, lengths, skew=skew, **TAIL)
    for example, length in zip(result, lengths.tolist(), strict=True):
        expected = [length * function(j / length) for j in range(length)]
        np.testing.assert_allclose(example[:length], expected, atol=1e-5)
        assert (np.diff(example[:length]) > 0).all()
        assert (example[length:] == length).all()


def kind(positions):
    """Which of the three an example of 20 tokens is, with its scale."""
    if np.allclose(positions, np.sqrt(20 * np.arange(20)), atol=1e-4):
        return "tail"
    scale = round(float(positions[1]), 3)
    np.testing.assert_allclose(positions, scale * np.arange(20), rtol=1e-5)
    return scale


@pytest.mark.parametrize(
    ("arguments", "probabilities"),
    [
        (
            {},
            {1: 0.7, "tail": 0.15}
            | dict.fromkeys((0.4, 0.5, 0.6, 0.7, 0.8), 0.03),
        ),
        (
            {"tail_fraction": 0, "head_fraction": 0.3, "head_scales": [0.25]},
            {1: 0.7, 0.25: 0.3},
        ),
        ({"tail_fraction": 0.3, "head_fraction": 0}, {1: 0.7, "tail": 0.3}),
    ],
    ids=["both", "head", "tail"],
)
def test_every_example_is_warped_with_its_probability(arguments, probabilities):
    kinds = map(kind, warp(20, DRAWS, **arguments))
    assert_counts_follow(collections.Counter(kinds), probabilities)


@pytest.mark.parametrize(
    "call",
    [
        {},
        {"lengths": np.array([30, 9])},
        {"lengths": np.array([30, 9]), "reference_length": np.array([25, 50])},
    ],
    ids=["tokens", "lengths", "reference"],
)
def test_evaluation_of_warped_positions_interpolates(call):
    warped, expected = (
        place(cls(train_length=20), 30, training=False, **call)
        for cls in (WarpedPositions, InterpolatedPositions)
    )
    expected = np.broadcast_to(expected, warped.shape)
    np.testing.assert_array_equal(warped, expected)


def augment(**arguments):
    sampler = AugmentedPositions(**{**NONE, "seed": 1, **arguments})
    return place(sampler, 4, DRAWS, training=True)


def assert_uniform(sample, limit):
    assert len(np.unique(sample)) > 0.99 * np.size(sample)
    assert_drawn_from(stats.uniform(-limit, 2 * limit), sample)


def assert_unrelated(first, second):
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / math.sqrt(len(first))


@pytest.mark.parametrize("normalize", [False, True])
def test_an_example_is_shifted_and_scaled_as_a_whole(normalize):
    positions = augment(
        max_global_shift=7, max_global_scale=1.5, normalize=normalize
    )
    # One step apart before scaling, and at `first` before the shift.
    scale = positions[:, 1] - positions[:, 0]
    first = -1.5 if normalize else 0
    shift = positions[:, 0] / scale - first
    np.testing.assert_allclose(
        positions,
        scale[:, None] * (first + np.arange(4) + shift[:, None]),
        atol=1e-5,
    )
    assert_uniform(shift, 7)
    assert_uniform(np.log(scale), math.log(1.5))
    assert_unrelated(shift, scale)


@pytest.mark.parametrize("limit", [0.2, 0.5])
def test_every_token_jitters_and_keeps_its_place(limit):
    positions = augment(max_local_shift=limit)
    jitter = positions - np.arange(4)
    assert_uniform(jitter, limit)
    assert_unrelated(jitter[:, 0], jitter[:, 1])
    assert_unrelated(jitter[:-1, 0], jitter[1:, 0])
    assert (np.diff(positions) > 0).all()
    np.testing.assert_array_equal(augment(), [np.arange(4)] * DRAWS)


@pytest.mark.parametrize("training", [True, False])
def test_the_mean_of_true_tokens_is_zero(training):
    sampler = AugmentedPositions(
        max_global_shift=0, max_local_shift=0, normalize=True
    )
    lengths = np.array([6, 3, 1])
    positions = place(sampler, 6, 3, lengths=lengths, training=training)
    for example, length in zip(positions, lengths, strict=True):
        assert abs(example[:length].mean()) < 1e-6
        steps = np.diff(example)
        np.testing.assert_allclose(steps, steps[0], rtol=1e-5)
        if not training:
            assert steps[0] == 1
    one = place(sampler, 6, 3, lengths=np.array(3), training=False)
    np.testing.assert_array_equal(one, [np.arange(6) - 1] * 3)
    counted = place(AugmentedPositions(), 5, training=False)
    np.testing.assert_array_equal(counted, [np.arange(5)] * 2)


def test_cape_is_the_sum_of_its_parts():
    embeddings = np.full((3, 4, 8), 2, "float32")
    form = CAPE(seed=3, max_local_shift=0.25, max_wavelength=100)
    sampler = AugmentedPositions(
        max_global_shift=5,
        max_local_shift=0.25,
        max_global_scale=1.03,
        normalize=False,
        seed=3,
    )
    plain = SinusoidalEncoding(max_wavelength=100, sampler=sampler)
    for training in (True, False):
        found = form(embeddings, training=training)
        expected = plain(embeddings, training=training)
        np.testing.assert_array_equal(found, expected)
        assert np.allclose(found[0], found[1], atol=1e-3) != training


def test_fractions_are_at_most_1_together():
    with pytest.raises(ValueError, match=r"at most; got 0\.15 and 0\.9"):
        WarpedPositions(train_length=20, tail_fraction=0.9)
