import collections

import numpy as np
import pytest

from keras_lengen.layers import SHAPE, ShiftedPositions
from tests.datasets.tasks.chi_square import assert_counts_follow

DRAWS = 4000


def shifts(tokens=5, lengths=None, **kwargs):
    """The shift of every example, after a look at the positions."""
    sampler = ShiftedPositions(seed=1, **kwargs)
    inputs = np.zeros((DRAWS, tokens))
    positions = np.asarray(sampler(inputs, lengths=lengths, training=True))
    assert positions.shape == inputs.shape
    np.testing.assert_array_equal(
        positions - positions[:, :1], np.tile(np.arange(tokens), (DRAWS, 1))
    )
    return positions[:, 0].tolist()


def assert_uniform(drawn, size):
    counts = collections.Counter(drawn)
    assert_counts_follow(counts, dict.fromkeys(range(size), 1 / size))


@pytest.mark.parametrize("max_shift", [1, 7, 20])
@pytest.mark.parametrize("lengths", [None, 2])
def test_all_shifts_are_equally_likely(max_shift, lengths):
    assert_uniform(shifts(lengths=lengths, max_shift=max_shift), max_shift)


def test_examples_are_shifted_apart():
    first, second = np.reshape(shifts(max_shift=3), (-1, 2)).T
    assert_uniform(3 * first + second, 9)


def test_random_padding_is_dealt_to_both_ends():
    lengths = np.tile([8, 6, 1], DRAWS)[:DRAWS]
    drawn = np.array(shifts(tokens=8, lengths=lengths, max_shift=None))
    for length in (8, 6, 1):
        assert_uniform(drawn[lengths == length].tolist(), 9 - length)
    assert_uniform(shifts(tokens=8, lengths=np.array(5), max_shift=None), 4)
    assert set(shifts(tokens=8, max_shift=None)) == {0}


@pytest.mark.parametrize(
    ("evaluation", "max_shift", "expected"),
    [
        ("zero", 50, [0, 0]),
        ("max", 50, [50, 50]),
        ("zero", None, [0, 0]),
        ("max", None, [2, 3]),
    ],
)
def test_evaluation_shifts_by(evaluation, max_shift, expected):
    sampler = ShiftedPositions(max_shift=max_shift, evaluation=evaluation)
    positions = sampler(np.zeros((2, 4)), lengths=np.array([2, 1]))
    np.testing.assert_array_equal(
        positions, np.arange(4) + np.array(expected)[:, None]
    )


def test_evaluation_may_draw():
    sampler = ShiftedPositions(max_shift=9, evaluation="random", seed=1)
    starts = sampler(np.zeros((DRAWS, 3)), training=False)[:, 0]
    assert_uniform(np.asarray(starts).tolist(), 9)


@pytest.mark.parametrize("max_shift", [40, None])
def test_the_shift_comes_after_the_padding_on_the_left(max_shift):
    encoding = SHAPE(max_shift=max_shift, seed=1)
    mask = np.arange(50) >= np.array([[49], [45], [10], [0]])
    positions = encoding.sample_positions(
        np.zeros((4, 50)), mask=mask, training=True
    )
    starts = set()
    for example, real in zip(np.asarray(positions), mask, strict=True):
        first = example[real][0]
        limit = max_shift or 51 - real.sum()
        assert 0 <= first < limit
        np.testing.assert_array_equal(
            example[real], first + np.arange(real.sum())
        )
        starts.add(int(first))
    assert len(starts) > 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_shift": 0}, "max_shift .* got 0"),
        ({"max_shift": 2.5}, "max_shift .* got 2.5"),
        ({"max_shift": 9, "evaluation": "even"}, "evaluation .* 'even'"),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        ShiftedPositions(**arguments)
