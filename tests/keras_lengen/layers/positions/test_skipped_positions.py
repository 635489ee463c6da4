import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import SkippedPositions
from tests.datasets.tasks.chi_square import assert_counts_follow

DRAWS = 4000


def draws(tokens, lengths=None, *, jit_compile=False, **kwargs):
    """Independent draws as an array `(DRAWS, tokens)`."""
    sampler = tf.function(
        SkippedPositions(seed=1, **kwargs), jit_compile=jit_compile
    )
    inputs = tf.zeros((DRAWS, tokens))
    positions = np.asarray(sampler(inputs, lengths=lengths, training=True))
    assert positions.shape == inputs.shape
    return positions


def enumerate_outcomes(tokens, max_position, num_pieces):
    """Probability of every row of positions, by going through all choices."""
    outcomes = collections.Counter()
    places = range(1, tokens)
    for cuts in itertools.product(places, repeat=num_pieces - 1):
        share = len(places) ** -(num_pieces - 1)
        rows = {(tuple(range(tokens)), max_position - tokens): share}
        for cut in sorted(cuts):
            further = collections.Counter()
            for (row, room), probability in rows.items():
                for skip in range(room + 1):
                    moved = (*row[:cut], *(p + skip for p in row[cut:]))
                    further[moved, room - skip] += probability / (room + 1)
            rows = further
        for (row, _), probability in rows.items():
            outcomes[row] += probability
    return outcomes


@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "xla"])
@pytest.mark.parametrize("num_pieces", [2, 3])
def test_all_cuts_and_skips_have_their_probability(num_pieces, jit_compile):
    rows = draws(
        4, max_position=7, num_pieces=num_pieces, jit_compile=jit_compile
    )
    assert_counts_follow(
        collections.Counter(map(tuple, rows.tolist())),
        enumerate_outcomes(4, 7, num_pieces),
    )


@pytest.mark.parametrize("lengths", [np.array(3), np.full(DRAWS, 3)])
def test_the_true_length_is_cut(lengths):
    rows = draws(6, lengths, max_position=9)
    assert_counts_follow(
        collections.Counter(map(tuple, rows[:, :3].tolist())),
        enumerate_outcomes(3, 9, 2),
    )
    assert rows.max() == 8


@pytest.mark.parametrize("num_pieces", [2, 5])
def test_neighbours_stay_neighbours_in_at_most_as_many_pieces(num_pieces):
    rows = draws(64, max_position=2048, num_pieces=num_pieces)
    steps = np.diff(rows, axis=-1)
    assert (rows[:, 0] == 0).all()
    assert (steps >= 1).all()
    assert (steps > 1).sum(axis=-1).max() == num_pieces - 1
    assert 1900 < rows.max() < 2048


def test_examples_are_cut_apart():
    first, second = SkippedPositions(max_position=2**24, seed=1)(
        np.zeros((2, 9)), training=True
    )
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("lengths", [0, 1])
def test_nothing_is_skipped_in_less_than_two_tokens(lengths):
    rows = draws(3, np.array(lengths), max_position=50)
    assert (rows[:, 0] == 0).all()
    assert rows.max() < 50


def test_a_sequence_as_long_as_the_range_is_ordinal():
    assert (draws(9, max_position=9, num_pieces=4) == np.arange(9)).all()


def test_evaluation_is_ordinal_or_drawn():
    inputs = np.zeros((2, 5))
    ordinal = SkippedPositions(max_position=50)(inputs)
    np.testing.assert_array_equal(ordinal, [[0, 1, 2, 3, 4]] * 2)
    drawing = SkippedPositions(max_position=50, evaluation="random", seed=1)
    assert not np.array_equal(drawing(inputs), ordinal)


@pytest.mark.parametrize("evaluation", ["ordinal", "random"])
def test_too_long_a_sequence_raises(evaluation):
    sampler = SkippedPositions(max_position=10, evaluation=evaluation)
    assert len(set(np.asarray(sampler(np.zeros((1, 10))))[0].tolist())) == 10
    with pytest.raises(ValueError, match=r"11 tokens.*10: raise max_position"):
        sampler(np.zeros((1, 11)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_position": 0}, "max_position .* got 0"),
        ({"max_position": 9, "num_pieces": 1}, "num_pieces .* got 1"),
        ({"max_position": 9, "evaluation": "even"}, "evaluation .* 'even'"),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        SkippedPositions(**arguments)
