import collections
import math

import numpy as np
import pytest

from keras_lengen.layers import InterpolatedPositions, WarpedPositions
from tests.datasets.tasks.chi_square import assert_counts_follow

DRAWS = 4000
TAIL = {"head_fraction": 0, "tail_fraction": 1}


def trained(tokens, batch_size=1, lengths=None, **kwargs):
    sampler = WarpedPositions(**{"train_length": 20, "seed": 1, **kwargs})
    inputs = np.zeros((batch_size, tokens))
    result = np.asarray(sampler(inputs, lengths=lengths, training=True))
    assert result.dtype == "float32"
    assert result.shape == inputs.shape
    return result


def beta_distribution(x):
    """Of Beta(2, 5): the chance of 2 successes at least in 6 trials."""
    return sum(
        math.comb(6, hits) * x**hits * (1 - x) ** (6 - hits)
        for hits in range(2, 7)
    )


def test_published_values():
    (roots,) = trained(20, **TAIL)
    np.testing.assert_allclose(
        roots[[0, 1, 2, 19]], [0, 4.472, 6.325, 19.494], atol=5e-4
    )
    (skewed,) = trained(20, skew="beta", **TAIL)
    np.testing.assert_allclose(
        skewed[[1, 2, 4, 5, 10, 15, 18]] / 20,
        [0.032774, 0.114265, 0.344640, 0.466064, 0.890625, 0.995361, 0.999945],
        atol=5e-7,
    )


@pytest.mark.parametrize(
    ("skew", "function"), [("sqrt", math.sqrt), ("beta", beta_distribution)]
)
def test_tails_go_by_the_true_length_and_keep_order(skew, function):
    lengths = np.array([25, 7, 1])
    result = trained(25, 3, lengths, skew=skew, **TAIL)
    for example, length in zip(result, lengths.tolist(), strict=True):
        expected = [length * function(j / length) for j in range(length)]
        np.testing.assert_allclose(example[:length], expected, atol=2e-5)
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
    kinds = map(kind, trained(20, DRAWS, **arguments))
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
def test_evaluation_interpolates(call):
    inputs = np.zeros((2, 30))
    warped = WarpedPositions(train_length=20)(inputs, training=False, **call)
    expected = InterpolatedPositions(train_length=20)(inputs, **call)
    np.testing.assert_array_equal(
        warped, np.broadcast_to(expected, inputs.shape)
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"train_length": 0}, "train_length .* got 0"),
        ({"head_fraction": -0.1}, "head_fraction .* got -0.1"),
        ({"tail_fraction": 0.9}, "at most; got 0.15 and 0.9"),
        ({"head_scales": ()}, r"head_scales .* got \(\)"),
        ({"head_scales": (0.5, 0)}, "head_scales .* got 0"),
        ({"skew": "log"}, "skew .* 'log'"),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        WarpedPositions(**{"train_length": 20, **arguments})
