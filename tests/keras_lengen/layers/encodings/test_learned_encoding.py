import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import (
    AbacusPositions,
    LearnedEncoding,
    PositionSampler,
    RandomizedLearnedEncoding,
    RandomizedPositions,
)
from keras_lengen.models import TransformerDecoder

EMBEDDINGS = np.ones((2, 3, 4), "float32")


def test_rows_of_the_table_are_added():
    encoding = LearnedEncoding(max_position=9)
    encoding.build((None, None, 4))
    table = np.arange(36.0).reshape(9, 4)
    encoding.set_weights([table])
    np.testing.assert_array_equal(encoding(EMBEDDINGS), [1 + table[:3]] * 2)
    positions = np.array([[8, 0, 5], [1, 2, 2]])
    np.testing.assert_array_equal(
        encoding(EMBEDDINGS, positions=positions), 1 + table[positions]
    )


def test_rows_start_with_unit_deviation_before_truncation():
    encoding = LearnedEncoding(max_position=2000)
    encoding.build((None, None, 16))
    (table,) = encoding.get_weights()
    assert abs(table.mean()) < 0.02
    # Of a normal distribution cut off at two deviations.
    assert abs(table.std() - 0.87963) < 0.02
    assert np.abs(table).max() <= 2


def test_there_is_no_row_below_0():
    class Negative(PositionSampler):
        negative = True

    with pytest.raises(ValueError, match=r"^sampler=Negative may give negat"):
        LearnedEncoding(max_position=9, sampler=Negative())


def test_the_table_is_as_long_as_the_sampler_draws_from():
    sampler = RandomizedPositions(max_position=7)
    assert LearnedEncoding(sampler=sampler).max_position == 7
    form = RandomizedLearnedEncoding(max_position=7)
    form.build((None, None, 4))
    assert form.table.shape == (7, 4)


@pytest.mark.parametrize("max_position", [None, 0, 2.0])
def test_wrong_sizes_raise(max_position):
    with pytest.raises(ValueError, match=f"rows .* got {max_position}"):
        LearnedEncoding(max_position=max_position)


def test_fractional_positions_raise():
    encoding = LearnedEncoding(max_position=9)
    with pytest.raises(ValueError, match=r"integers; got float32: use"):
        encoding(EMBEDDINGS, positions=np.array([0.0, 0.5, 1.0], "float32"))


@pytest.mark.parametrize("position", [-1, 9, 1000])
@pytest.mark.parametrize("jit_compile", [None, False, True])
def test_positions_off_the_table_raise_or_show(position, jit_compile):
    encoding = LearnedEncoding(max_position=9)
    encoding.build((None, None, 4))

    def call(positions):
        return encoding(EMBEDDINGS, positions=positions)

    if jit_compile is not None:
        call = tf.function(call, jit_compile=jit_compile)
    try:
        result = np.asarray(call(tf.constant([0, position, 8])))
    except (ValueError, tf.errors.InvalidArgumentError) as error:
        assert "positions must be from 0 to 8" in str(error)
        assert str(position) in str(error)
    else:
        assert np.isnan(result[:, 1]).all()
        assert np.isfinite(result[:, [0, 2]]).all()


def test_tokens_that_share_positions_need_fewer_rows_than_tokens():
    model = TransformerDecoder(
        vocabulary_size=12,
        output_size=12,
        num_layers=1,
        num_heads=2,
        model_dim=8,
        encoding=LearnedEncoding(
            max_position=4,
            sampler=AbacusPositions(digits=range(10), max_shift=1),
        ),
    )
    model.encoding.check_length(8)
    ids = np.array([[1, 2, 3, 10, 4, 5, 6, 11]])
    assert np.isfinite(model(ids)).all()
    with pytest.raises(Exception, match="from 0 to 3, the rows"):
        model(np.array([[1, 2, 3, 10, 4, 5, 6, 7]]))
