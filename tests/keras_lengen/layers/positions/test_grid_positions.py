import numpy as np
import pytest
from keras import ops

from keras_lengen.layers import (
    FIRE,
    ALiBi,
    AugmentedPositions,
    AxialEncoding,
    ContinuousPositions,
    GridPositions,
    LearnedEncoding,
    RandomizedPositions,
    SinusoidalEncoding,
)

TOKENS = np.zeros((2, 11, 4), "float32")


def test_each_axis_has_a_sampler_of_its_own():
    sampler = GridPositions(
        width=4,
        row=RandomizedPositions(max_position=100, seed=1),
        column=RandomizedPositions(max_position=50, resample="example", seed=2),
    )
    assert sampler.is_random
    rows, columns = map(np.asarray, sampler(TOKENS))
    assert rows.shape == (11,)
    assert columns.shape == (2, 11)
    assert (np.diff(rows[::4]) > 0).all()
    assert (np.diff(columns[:, :4]) > 0).all()
    np.testing.assert_array_equal(rows, np.repeat(rows[::4], 4)[:11])
    np.testing.assert_array_equal(columns[:, 4:8], columns[:, :4])
    assert (columns[0] != columns[1]).any()


def test_rows_of_the_true_length_are_drawn():
    """Two rows of two, four or six tokens, as for sequences that end there."""
    sampler = GridPositions(
        width=2, row=RandomizedPositions(max_position=30, evaluation="even")
    )
    lengths = np.array([3, 6], "int32")
    rows, _ = sampler(TOKENS[:, :6], lengths=lengths, training=False)
    assert rows.numpy()[0, :4].tolist() == [0, 0, 15, 15]
    assert rows.numpy()[1].tolist() == [0, 0, 10, 10, 20, 20]


@pytest.mark.parametrize(
    ("tokens", "shape"),
    [
        (506, (22, 23)),
        (2025, (45, 45)),
        (72, (8, 9)),
        (630, (21, 30)),
        (7, (1, 7)),
        (1, (1, 1)),
        (0, (0, 1)),
    ],
)
def test_the_width_of_nearly_square_images(tokens, shape):
    sampler = GridPositions()
    assert sampler.shape(tokens) == shape
    found = sampler.shape(ops.convert_to_tensor(tokens, "int32"))
    assert tuple(map(int, found)) == shape
    if tokens < 100:
        rows, columns = sampler(np.zeros((2, tokens)))
        assert rows.numpy().tolist() == [n // shape[1] for n in range(tokens)]
        assert columns.numpy().tolist() == [n % shape[1] for n in range(tokens)]


def test_rows_and_columns_need_a_position_each():
    short = RandomizedPositions(max_position=2)
    for axis, message in (("row", "3 rows"), ("column", "4 columns")):
        grid = GridPositions(width=4, **{axis: short})
        with pytest.raises(ValueError, match=f"has {message}, but"):
            grid.check_length(11)


def test_encodings_of_an_axis_must_be_defined_at_its_positions():
    fractions = ContinuousPositions(max_position=9)
    below = AugmentedPositions(normalize=True)
    for grid, promise in (
        (GridPositions(row=fractions), (True, False)),
        (GridPositions(column=below), (True, True)),
        (GridPositions(), (False, False)),
    ):
        assert (grid.fractional, grid.negative) == promise
    for row, column, grid, message in (
        (
            LearnedEncoding(max_position=9),
            SinusoidalEncoding(),
            GridPositions(row=fractions),
            "ContinuousPositions gives fractions, but LearnedEncoding",
        ),
        (
            ALiBi(),
            FIRE(),
            GridPositions(column=below),
            "AugmentedPositions may give negative positions, at which FIRE",
        ),
    ):
        with pytest.raises(ValueError, match=f"^sampler={message}"):
            AxialEncoding(row=row, column=column, sampler=grid)
        # The other axis has a sampler of its own.
        AxialEncoding(row=column, column=row, sampler=grid)
