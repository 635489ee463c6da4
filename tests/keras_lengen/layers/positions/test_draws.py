"""Distributions of the samplers that draw from a range of positions."""

import collections
import itertools
import math

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from keras_lengen.layers import (
    ContinuousPositions,
    RandomizedPositions,
    ShiftedPositions,
    SkippedPositions,
)
from tests.datasets.tasks.chi_square import (
    assert_counts_follow,
    assert_drawn_from,
)

DRAWS, TOP = 4000, 50


def draw(sampler, tokens, lengths=None, *, jit_compile=False, training=True):
    """Independent draws, an array `(DRAWS, tokens)`."""
    sampler = tf.function(sampler, jit_compile=jit_compile)
    inputs = tf.zeros((DRAWS, tokens))
    positions = np.asarray(sampler(inputs, lengths=lengths, training=training))
    assert positions.shape == inputs.shape
    return positions


def randomize(**arguments):
    return RandomizedPositions(resample="example", seed=1, **arguments)


def alike(rows):
    rows = list(rows)
    return dict.fromkeys(rows, 1 / len(rows))


def choose(count, size):
    return alike(itertools.combinations(range(size), count))


def shift(count, size):
    return alike(tuple(range(s, s + count)) for s in range(size))


def skip(tokens, max_position, num_pieces):
    """Probability of every row of positions, by going through all choices."""
    outcomes = collections.Counter()
    places = range(1, tokens)
    for cuts in itertools.product(places, repeat=num_pieces - 1):
        share = len(places) ** -(num_pieces - 1)
        rows = {(tuple(range(tokens)), max_position - tokens): share}
        for cut in sorted(cuts):
            further = collections.Counter()
            for (row, room), probability in rows.items():
                for size in range(room + 1):
                    moved = (*row[:cut], *(p + size for p in row[cut:]))
                    further[moved, room - size] += probability / (room + 1)
            rows = further
        for (row, _), probability in rows.items():
            outcomes[row] += probability
    return outcomes


EACH = np.full(DRAWS, 3)


@pytest.mark.parametrize(
    ("sampler", "tokens", "lengths", "outcomes"),
    [
        (randomize(max_position=6), 3, None, choose(3, 6)),
        (
            randomize(max_position=5, ordered=False),
            3,
            None,
            alike(itertools.permutations(range(5), 3)),
        ),
        (
            # The distances from the first are the published draw.
            randomize(max_position=7, include_zero=True),
            3,
            None,
            alike(
                (0, *rest) for rest in itertools.combinations(range(1, 7), 2)
            ),
        ),
        (SkippedPositions(max_position=7, seed=1), 4, None, skip(4, 7, 2)),
        (
            SkippedPositions(max_position=7, num_pieces=3, seed=1),
            4,
            None,
            skip(4, 7, 3),
        ),
        (ShiftedPositions(max_shift=1, seed=1), 5, None, shift(5, 1)),
        (ShiftedPositions(max_shift=20, seed=1), 5, None, shift(5, 20)),
        # The padding is dealt to both ends.
        (ShiftedPositions(max_shift=None, seed=1), 8, EACH, shift(3, 6)),
        (ShiftedPositions(max_shift=None, seed=1), 8, np.array(3), shift(3, 6)),
        (ShiftedPositions(max_shift=None, seed=1), 8, None, shift(8, 1)),
    ],
)
def test_all_rows_have_their_probability(sampler, tokens, lengths, outcomes):
    programs = [False]
    if lengths is None and isinstance(sampler, SkippedPositions):
        programs = [False, True]
    for jit_compile in programs:
        rows = draw(sampler, tokens, lengths, jit_compile=jit_compile)
        rows = rows[:, : tokens if lengths is None else 3].tolist()
        assert_counts_follow(collections.Counter(map(tuple, rows)), outcomes)
        # One example says nothing of the next one.
        pairs = zip(rows[::2], rows[1::2], strict=True)
        same = sum(one == other for one, other in pairs) / (DRAWS / 2)
        expected = sum(share**2 for share in outcomes.values())
        assert abs(same - expected) < 4 * math.sqrt(expected / (DRAWS / 2))


def assert_order_statistics(positions):
    """The k-th of n uniform numbers has the distribution Beta(k, n + 1 - k)."""
    n = positions.shape[1]
    assert (np.diff(positions) >= 0).all()
    assert positions.min() >= 0
    assert positions.max() < TOP
    for k, column in enumerate(positions.T, start=1):
        assert_drawn_from(stats.beta(k, n + 1 - k), column / TOP)


@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "xla"])
def test_continuous_positions_are_sorted_uniform_numbers(jit_compile):
    sampler = ContinuousPositions(max_position=TOP, resample="example", seed=1)
    for training in (True, False):
        assert_order_statistics(
            draw(sampler, 5, jit_compile=jit_compile, training=training)
        )


def test_texts_without_room_to_skip():
    short = SkippedPositions(max_position=9, num_pieces=5, seed=1)
    assert (draw(short, 9) == np.arange(9)).all()
    rows = draw(short, 3, np.array(0))
    assert (rows[:, 0] == 0).all()
    assert rows.max() < 9


@pytest.mark.parametrize("max_position", [10, 46_343, 100_003, 2**24])
@pytest.mark.parametrize("own_length", [False, True])
def test_even_evaluation_spreads_the_true_length(max_position, own_length):
    """Exactly, also where a product of index and range is beyond int32."""
    tokens = min(max_position, 46_342)
    lengths = [tokens - 3, tokens] if own_length else [tokens]
    given = {"lengths": np.array(lengths)} if own_length else {}
    for cls in (RandomizedPositions, ContinuousPositions):
        sampler = cls(max_position=max_position, evaluation="even")
        found = sampler(np.zeros((2, tokens)), training=False, **given)
        for row, length in zip(np.atleast_2d(found), lengths, strict=True):
            expected = np.arange(length, dtype="int64") * max_position
            if cls is RandomizedPositions:
                np.testing.assert_array_equal(row[:length], expected // length)
            else:
                np.testing.assert_allclose(
                    row[:length], expected / length, rtol=1e-6
                )
                np.testing.assert_allclose(
                    row[length:], max_position, rtol=1e-6
                )


INPUTS, LENGTHS = np.zeros((2, 4)), np.array([2, 1])
FIRST = [[0, 1], [0, 1]]


# Other samplers have examples in their docstrings.
@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        (RandomizedPositions(max_position=9, evaluation="ordinal"), FIRST),
        (ShiftedPositions(max_shift=None, evaluation="zero"), FIRST),
        (ShiftedPositions(max_shift=None, evaluation="max"), [[2, 3], [3, 4]]),
    ],
)
def test_evaluation_counts(sampler, expected):
    positions = sampler(INPUTS, lengths=LENGTHS, training=False)
    found = np.broadcast_to(positions, (2, 4))[:, :2]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("cls", "evaluation"),
    [
        *((RandomizedPositions, each) for each in ("random", "even")),
        *((SkippedPositions, each) for each in ("ordinal", "random")),
    ],
)
def test_too_long_a_sequence_raises(cls, evaluation):
    sampler = cls(max_position=10, evaluation=evaluation)
    assert len(np.unique(sampler(np.zeros((1, 10))))) == 10
    with pytest.raises(ValueError, match=r"11 tokens.*10: raise max_position"):
        sampler(np.zeros((1, 11)))
