import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import ContinuousPositions, LearnedEncoding, RoPE

DRAWS, TOP = 4000, 50


def draws(tokens, lengths=None, *, training=True, jit_compile=False):
    """Independent draws as an array `(DRAWS, tokens)`."""
    sampler = tf.function(
        ContinuousPositions(max_position=TOP, resample="example", seed=1),
        jit_compile=jit_compile,
    )
    inputs = tf.zeros((DRAWS, tokens))
    positions = np.asarray(sampler(inputs, lengths=lengths, training=training))
    assert positions.shape == inputs.shape
    assert positions.dtype == "float32"
    return positions


def assert_order_statistics(positions):
    """The k-th of n uniform numbers has the distribution Beta(k, n + 1 - k).

    Kolmogorov's test, missed by chance once in 30,000 times.
    """
    n = positions.shape[1]
    assert (np.diff(positions) >= 0).all()
    assert positions.min() >= 0
    assert positions.max() < TOP
    for k, column in enumerate(np.sort(positions, axis=0).T, start=1):
        x = column.astype("float64") / TOP
        # At least k of n numbers are below x.
        expected = sum(
            math.comb(n, hits) * x**hits * (1 - x) ** (n - hits)
            for hits in range(k, n + 1)
        )
        seen = np.arange(1, DRAWS + 1) / DRAWS
        assert np.abs(seen - expected).max() < 2.35 / math.sqrt(DRAWS)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "xla"])
def test_positions_are_sorted_uniform_numbers(jit_compile, training):
    assert_order_statistics(
        draws(5, training=training, jit_compile=jit_compile)
    )


@pytest.mark.parametrize("lengths", [np.array(3), np.full(DRAWS, 3)])
def test_the_true_length_is_drawn(lengths):
    positions = draws(6, lengths)
    assert_order_statistics(positions[:, :3])
    assert (positions[:, 3:] == TOP).all()


def test_lengths_differ_within_a_shared_draw():
    sampler = ContinuousPositions(max_position=TOP, seed=1)
    positions = np.asarray(sampler(np.zeros((2, 6)), lengths=np.array([2, 6])))
    # The numbers of the shorter one are among those of the longer one.
    assert set(positions[0, :2]) < set(positions[1])


def test_each_example_has_its_own_draw_or_all_share_one():
    inputs = np.zeros((2, 20))
    own = ContinuousPositions(max_position=99, resample="example")(inputs)
    assert not np.array_equal(own[0], own[1])
    assert ContinuousPositions(max_position=99)(inputs).shape == (20,)


@pytest.mark.parametrize("max_position", [10, 2**24])
@pytest.mark.parametrize("lengths", [None, np.array([4, 7])])
def test_even_evaluation_spreads_the_true_length(max_position, lengths):
    sampler = ContinuousPositions(max_position=max_position, evaluation="even")
    positions = np.asarray(sampler(np.zeros((2, 7)), lengths=lengths))
    for row, length in zip(
        np.atleast_2d(positions),
        [7] if lengths is None else lengths.tolist(),
        strict=True,
    ):
        expected = np.arange(length) / length * max_position
        np.testing.assert_allclose(row[:length], expected, rtol=1e-6)
        assert (row[length:] == max_position).all()


def test_a_sequence_may_be_longer_than_the_range():
    sampler = ContinuousPositions(max_position=10, seed=1)
    sampler.check_length(1000)
    positions = np.asarray(sampler(np.zeros((1, 1000))))
    assert 9.8 < positions.max() < 10
    assert (np.diff(positions) >= 0).all()


@pytest.mark.parametrize("floatx", ["float16", "bfloat16"])
def test_draws_are_float32_under_any_floatx(floatx):
    before = keras.config.floatx()
    try:
        keras.config.set_floatx(floatx)
        sampler = ContinuousPositions(max_position=2000, seed=1)
        positions = np.asarray(sampler(np.zeros((1, 2000))))
    finally:
        keras.config.set_floatx(before)
    assert positions.dtype == "float32"
    assert len(set(positions.tolist())) > 1990


def test_a_table_refuses_fractions_and_a_formula_takes_them():
    sampler = ContinuousPositions(max_position=9)
    message = "sampler=ContinuousPositions gives fractions, but LearnedEnc"
    with pytest.raises(ValueError, match=message):
        LearnedEncoding(max_position=9, sampler=sampler)
    assert RoPE(sampler=sampler)(np.ones((1, 3, 2, 4))).shape == (1, 3, 2, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_position": 0}, "max_position .* got 0"),
        ({"max_position": 2.5}, "max_position .* got 2.5"),
        ({"max_position": 9, "resample": "layer"}, "resample .* 'layer'"),
        ({"max_position": 9, "evaluation": "ordinal"}, "evaluation .* 'ord"),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        ContinuousPositions(**arguments)
