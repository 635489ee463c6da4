import math

import numpy as np
import pytest

from keras_lengen.layers import AugmentedPositions

DRAWS, TOKENS = 4000, 4
NONE = {"max_global_shift": 0, "max_local_shift": 0, "max_global_scale": 1}


def trained(lengths=None, **kwargs):
    sampler = AugmentedPositions(**{**NONE, "seed": 1, **kwargs})
    inputs = np.zeros((DRAWS, TOKENS))
    return np.asarray(sampler(inputs, lengths=lengths, training=True))


def assert_uniform(sample, limit):
    """Kolmogorov's test, missed by chance once in 30,000 times."""
    sample = np.sort(np.ravel(sample))
    assert len(np.unique(sample)) > 0.99 * len(sample)
    expected = (sample / limit + 1) / 2
    seen = np.arange(1, len(sample) + 1) / len(sample)
    assert np.abs(seen - expected).max() < 2.35 / math.sqrt(len(sample))


def assert_unrelated(first, second):
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / math.sqrt(len(first))


def test_nothing_is_drawn_without_limits():
    np.testing.assert_array_equal(trained(), [np.arange(TOKENS)] * DRAWS)


@pytest.mark.parametrize("normalize", [False, True])
def test_an_example_is_shifted_and_scaled_as_a_whole(normalize):
    positions = trained(
        max_global_shift=7, max_global_scale=1.5, normalize=normalize
    )
    # One step apart before scaling, and at `first` before the shift.
    scale = positions[:, 1] - positions[:, 0]
    first = -(TOKENS - 1) / 2 if normalize else 0
    shift = positions[:, 0] / scale - first
    np.testing.assert_allclose(
        positions,
        scale[:, None] * (first + np.arange(TOKENS) + shift[:, None]),
        atol=1e-5,
    )
    assert_uniform(shift, 7)
    assert_uniform(np.log(scale), math.log(1.5))
    assert_unrelated(shift, scale)


@pytest.mark.parametrize("limit", [0.2, 0.5])
def test_every_token_jitters_and_keeps_its_place(limit):
    positions = trained(max_local_shift=limit)
    jitter = positions - np.arange(TOKENS)
    assert_uniform(jitter, limit)
    assert_unrelated(jitter[:, 0], jitter[:, 1])
    assert_unrelated(jitter[:-1, 0], jitter[1:, 0])
    assert (np.diff(positions) > 0).all()


def test_jitter_is_scaled_too():
    positions = trained(max_local_shift=0.5, max_global_scale=4)
    gaps = np.diff(positions[:, :2]).ravel()
    # A gap of 0 to 2 tokens times 1/4 to 4, where it would end at 5 otherwise.
    assert 6 < gaps.max() < 8


@pytest.mark.parametrize("training", [True, False])
def test_the_mean_of_true_tokens_is_zero(training):
    sampler = AugmentedPositions(
        max_global_shift=0, max_local_shift=0, normalize=True
    )
    lengths = np.array([6, 3, 1])
    positions = np.asarray(
        sampler(np.zeros((3, 6)), lengths=lengths, training=training)
    )
    for example, length in zip(positions, lengths, strict=True):
        assert abs(example[:length].mean()) < 1e-6
        steps = np.diff(example)
        np.testing.assert_allclose(steps, steps[0], rtol=1e-5)
        if not training:
            assert steps[0] == 1
    one = sampler(np.zeros((3, 6)), lengths=np.array(3), training=False)
    np.testing.assert_array_equal(one, [np.arange(6) - 1] * 3)


def test_evaluation_counts():
    positions = AugmentedPositions()(np.zeros((2, 5)), training=False)
    assert positions.dtype == "float32"
    np.testing.assert_array_equal(positions, [np.arange(5)] * 2)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("max_global_shift", -1),
        ("max_local_shift", -0.1),
        ("max_global_scale", 0.9),
    ],
)
def test_wrong_arguments_raise(argument, value):
    with pytest.raises(ValueError, match=rf"{argument} .* got {value}"):
        AugmentedPositions(**{argument: value})
