import collections
import itertools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import RandomizedPositions
from tests.datasets.tasks.chi_square import assert_counts_follow

DRAWS = 4000


def draws(tokens, lengths=None, *, jit_compile=False, **kwargs):
    """Independent draws as an array `(DRAWS, tokens)`."""
    sampler = RandomizedPositions(resample="example", seed=1, **kwargs)
    sampler = tf.function(sampler, jit_compile=jit_compile)
    inputs = tf.zeros((DRAWS, tokens))
    return np.asarray(sampler(inputs, lengths=lengths, training=True))


def assert_equally_likely(rows, outcomes):
    outcomes = list(outcomes)
    counts = collections.Counter(map(tuple, rows.tolist()))
    assert_counts_follow(
        counts, {outcome: 1 / len(outcomes) for outcome in outcomes}
    )


@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "xla"])
def test_all_subsets_are_equally_likely(jit_compile):
    rows = draws(3, max_position=6, jit_compile=jit_compile)
    assert_equally_likely(rows, itertools.combinations(range(6), 3))


def test_all_orders_are_equally_likely_without_sorting():
    orders = itertools.permutations(range(5), 3)
    rows = draws(3, max_position=5, ordered=False)
    assert_equally_likely(rows, orders)


@pytest.mark.parametrize("lengths", [np.array(2), np.full(DRAWS, 2)])
def test_padding_leaves_all_subsets_equally_likely(lengths):
    subsets = itertools.combinations(range(6), 2)
    rows = draws(5, lengths, max_position=6)
    assert_equally_likely(rows[:, :2], subsets)


def test_lengths_differ_within_a_shared_draw():
    sampler = tf.function(RandomizedPositions(max_position=6, seed=1))
    inputs, lengths = tf.zeros((2, 4)), tf.constant([1, 2])
    positions = np.stack(
        [sampler(inputs, lengths=lengths, training=True) for _ in range(600)]
    )
    for example, length in enumerate([1, 2]):
        assert_equally_likely(
            positions[:, example, :length],
            itertools.combinations(range(6), length),
        )


@pytest.mark.parametrize("index", range(4))
def test_order_statistics_and_inclusion_of_a_long_range(index):
    """The k-th of T positions is p with the known probability.

    `C(p, k) C(L - 1 - p, T - 1 - k) / C(L, T)`, which summed over k makes
    every position equally likely, T / L.
    """
    size, tokens = 40, 4
    positions = draws(tokens, max_position=size)[:, index]
    probabilities = {
        position: math.comb(position, index)
        * math.comb(size - 1 - position, tokens - 1 - index)
        / math.comb(size, tokens)
        for position in range(index, size - tokens + 1 + index)
    }
    # Ten wide classes, for rare outcomes spoil the approximation.
    classes = collections.Counter()
    for position, probability in probabilities.items():
        classes[position // 4] += probability
    counts = collections.Counter((positions // 4).tolist())
    assert_counts_follow(counts, classes)


def test_each_example_has_its_own_draw_or_all_share_one():
    inputs = np.zeros((2, 20))
    own = RandomizedPositions(max_position=99, resample="example")(inputs)
    assert not np.array_equal(own[0], own[1])
    shared = RandomizedPositions(max_position=99)(inputs)
    assert shared.shape == (20,)


def evaluate(tokens, lengths=None, max_position=10, **kwargs):
    sampler = RandomizedPositions(max_position=max_position, **kwargs)
    inputs = np.zeros((2, tokens))
    return np.asarray(sampler(inputs, lengths=lengths, training=False))


def test_evaluation_draws_by_default():
    assert not np.array_equal(
        evaluate(9, max_position=99), evaluate(9, max_position=99)
    )


@pytest.mark.parametrize("ordered", [True, False])
def test_ordinal_evaluation_counts(ordered):
    positions = evaluate(4, evaluation="ordinal", ordered=ordered)
    np.testing.assert_array_equal(positions, [0, 1, 2, 3])


@pytest.mark.parametrize("max_position", [10, 2048, 2**24])
def test_even_evaluation_spreads_the_true_length(max_position):
    lengths = np.array([4, 7])
    positions = evaluate(
        7, lengths, max_position=max_position, evaluation="even"
    )
    for example, length in enumerate(lengths.tolist()):
        np.testing.assert_array_equal(
            positions[example, :length],
            [index * max_position // length for index in range(length)],
        )


@pytest.mark.parametrize("evaluation", ["random", "even", "ordinal"])
def test_too_long_a_sequence_raises(evaluation):
    assert len(set(evaluate(10, evaluation=evaluation).tolist())) == 10
    with pytest.raises(ValueError, match=r"11 tokens.*10: raise max_position"):
        evaluate(11, evaluation=evaluation)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_position": 0}, "max_position .* got 0"),
        ({"max_position": 2.5}, "max_position .* got 2.5"),
        ({"max_position": 9, "resample": "layer"}, "resample .* 'layer'"),
        ({"max_position": 9, "evaluation": "off"}, "evaluation .* 'off'"),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        RandomizedPositions(**arguments)


@pytest.mark.parametrize("max_position", [46_343, 100_003, 2**24])
@pytest.mark.parametrize("own_length", [False, True])
def test_even_evaluation_is_exact_for_long_sequences(max_position, own_length):
    """Where a product of index and range is beyond int32."""
    tokens = 46_342
    lengths = np.array([tokens - 5, tokens]) if own_length else None
    positions = evaluate(
        tokens, lengths, max_position=max_position, evaluation="even"
    )
    for row, length in zip(
        np.atleast_2d(positions),
        [tokens] if lengths is None else lengths.tolist(),
        strict=False,
    ):
        expected = np.arange(length, dtype="int64") * max_position // length
        np.testing.assert_array_equal(row[:length], expected)


@pytest.mark.parametrize("floatx", ["float16", "bfloat16"])
def test_draws_span_the_range_under_any_floatx(floatx):
    before = keras.config.floatx()
    try:
        keras.config.set_floatx(floatx)
        sampler = RandomizedPositions(max_position=2000, seed=1)
        draws = [np.asarray(sampler(np.zeros((1, 20)))) for _ in range(50)]
    finally:
        keras.config.set_floatx(before)
    assert abs(np.mean(draws) - 999.5) < 60


@pytest.mark.parametrize("tokens", [2, 5])
def test_distances_are_the_published_draw(tokens):
    """`tokens - 1` of `1 .. max_position - 1`, each as often as any other."""
    max_position = 12
    positions = draws(tokens, max_position=max_position, include_zero=True)
    assert (positions[:, 0] == 0).all()
    distances = collections.Counter(positions[:, 1:].ravel().tolist())
    share = 1 / (max_position - 1)
    assert_counts_follow(distances, {d: share for d in range(1, max_position)})
