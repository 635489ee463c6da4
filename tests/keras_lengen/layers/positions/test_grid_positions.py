import numpy as np
import pytest

from keras_lengen.layers import GridPositions, RandomizedPositions
from tests.keras_lengen.layers.arguments import assert_config_round_trip

TOKENS = np.zeros((2, 11, 4), "float32")


def test_rows_and_columns_in_turn():
    rows, columns = GridPositions(width=4)(TOKENS)
    assert rows.numpy().tolist() == [0] * 4 + [1] * 4 + [2] * 3
    assert columns.numpy().tolist() == [0, 1, 2, 3] * 2 + [0, 1, 2]


def test_each_axis_has_a_sampler_of_its_own():
    sampler = GridPositions(
        width=4,
        row=RandomizedPositions(max_position=100, seed=1),
        column=RandomizedPositions(max_position=50, resample="example", seed=2),
    )
    assert sampler.draws
    rows, columns = map(np.asarray, sampler(TOKENS))
    assert rows.shape == (11,)
    assert columns.shape == (2, 11)
    assert (np.diff(rows[::4]) > 0).all()
    assert (np.diff(columns[:, :4]) > 0).all()
    np.testing.assert_array_equal(rows, np.repeat(rows[::4], 4)[:11])
    np.testing.assert_array_equal(columns[:, 4:8], columns[:, :4])
    assert (columns[0] != columns[1]).any()
    assert_config_round_trip(sampler)


def test_rows_of_the_true_length_are_drawn():
    """Two rows of two, four or six tokens, as for sequences that end there."""
    sampler = GridPositions(
        width=2,
        row=RandomizedPositions(max_position=30, evaluation="even"),
    )
    lengths = np.array([3, 6], "int32")
    rows, _ = sampler(TOKENS[:, :6], lengths=lengths, training=False)
    assert rows.numpy()[0, :4].tolist() == [0, 0, 15, 15]
    assert rows.numpy()[1].tolist() == [0, 0, 10, 10, 20, 20]


@pytest.mark.parametrize("width", [0, -1, 2.5])
def test_a_wrong_width_raises(width):
    with pytest.raises(ValueError, match="width must be an integer from 1"):
        GridPositions(width=width)
