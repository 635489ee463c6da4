"""Encodings that read a table of vectors or numbers."""

import math

import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import (
    AbacusPositions,
    LearnedEncoding,
    PositionSampler,
    RandomizedLearnedEncoding,
    RandomizedPositions,
    ShiftedPositions,
    T5Bias,
    WarpedPositions,
)
from keras_lengen.layers.encodings.t5_bias import find_bucket_starts
from tests.covering import cover
from tests.keras_lengen.layers.encodings.table import (
    HEADS,
    WIDTH,
    make_built,
    random_inputs,
)
from tests.keras_lengen.models.small import decoder
from tests.refusals import refuses

QUERY, KEY = random_inputs("bias")
SHARED = np.array([0, 1, 3, 4, 19, 20])
OWN = np.stack([SHARED, [5, 50, 51, 2, 3, 70]])
EMBEDDINGS = np.ones((2, 3, 4), "float32")
CAUSAL = [19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]
BIDIRECTIONAL = [12, 16, 23, 32, 46, 64, 91]


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


def test_the_table_is_as_long_as_the_sampler_draws_from():
    sampler = RandomizedPositions(max_position=7)
    assert LearnedEncoding(sampler=sampler).max_position == 7
    form = RandomizedLearnedEncoding(max_position=7)
    form.build((None, None, 4))
    assert form.table.shape == (7, 4)


class Negative(PositionSampler):
    negative = True


@refuses(
    ({"max_position": None}, "rows .* got None"),
    ({"sampler": Negative()}, r"^sampler=Negative may give negat"),
    (
        {"sampler": RandomizedPositions(max_position=100)},
        "max_position=100, but",
    ),
    ({"sampler": ShiftedPositions(max_shift=100)}, "max_shift=100, but"),
    ({"sampler": WarpedPositions(train_length=5)}, "gives fractions"),
)
def test_there_must_be_a_row_for_every_position(arguments):
    LearnedEncoding(**{"max_position": 9, **arguments})


@pytest.mark.parametrize("position", [-1, 9, 1000])
@pytest.mark.parametrize("jit_compile", [None, False, True])
def test_positions_off_the_table_raise_or_show(position, jit_compile):
    encoding = LearnedEncoding(max_position=9)
    encoding.build((None, None, 4))

    def call(positions):
        return encoding(EMBEDDINGS, positions=positions)

    with pytest.raises(ValueError, match=r"integers; got float32: use"):
        call(np.array([0.0, 0.5, 1.0], "float32"))
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
    sampler = AbacusPositions(digits=range(10), max_shift=1)
    encoding = LearnedEncoding(max_position=4, sampler=sampler)
    encoding.check_length(8)
    model = decoder(encoding, vocabulary_size=12)
    ids = np.array([[1, 2, 3, 10, 4, 5, 6, 11]])
    assert np.isfinite(model(ids)).all()
    with pytest.raises(Exception, match="from 0 to 3, the rows"):
        model(np.array([[1, 2, 3, 10, 4, 5, 6, 7]]))


@pytest.mark.parametrize(
    ("positions", "max_distance", "causal"),
    cover([SHARED, OWN], [0, 2, 16], [False, True]),
)
def test_vectors_of_distances(positions, max_distance, causal):
    encoding = make_built("ShawEncoding", max_distance=max_distance)
    table = np.asarray(encoding.table)
    assert table.shape == (2 * max_distance + 1, WIDTH)
    bias = encoding(QUERY, KEY, positions=positions, causal=causal)
    of_examples = np.broadcast_to(positions, QUERY.shape[:2])
    steps = of_examples[:, None, :] - of_examples[:, :, None]
    vectors = table[np.clip(steps, -max_distance, max_distance) + max_distance]
    products = np.einsum("bihd,bijd->bhij", QUERY, vectors)
    np.testing.assert_allclose(bias, products / math.sqrt(WIDTH), atol=1e-5)
    # Fractional distances are rounded.
    near = SHARED + np.array([0, 0.25, -0.25, 0, 0.25, 0])
    rounded, whole = (
        encoding(QUERY, KEY, positions=each, causal=causal)
        for each in (near, SHARED)
    )
    np.testing.assert_array_equal(rounded, whole)


def buckets(query_position, key_positions, *, causal=False, **kwargs):
    """The buckets of keys, read from a table that holds their numbers."""
    encoding = T5Bias(**kwargs)
    keys = np.asarray(key_positions)
    key = np.ones((1, len(keys), HEADS, 4), "float32")
    encoding.build(key.shape)
    numbers = np.arange(encoding.num_buckets, dtype="float32")
    encoding.set_weights([np.stack([numbers, -numbers], axis=-1)])
    bias = encoding(
        *(key[:, :1], key),
        positions=np.array([query_position]),
        key_positions=keys,
        causal=causal,
    )
    np.testing.assert_array_equal(bias[:, 0], -bias[:, 1])
    return bias[0, 0, 0].numpy().astype(int).tolist()


def by_logarithms(distance, num_buckets, max_distance):
    exact = num_buckets // 2
    if distance < exact:
        return distance
    share = np.log(distance / exact) / np.log(max_distance / exact)
    return min(exact + int(share * (num_buckets - exact)), num_buckets - 1)


def test_published_buckets():
    assert find_bucket_starts(32, 128) == [*range(17), *CAUSAL]
    assert find_bucket_starts(16, 128) == [*range(9), *BIDIRECTIONAL]
    ahead = [0, 1, 7, 8, 16, 128, 500]
    assert buckets(0, ahead) == [0, 17, 23, 24, 26, 31, 31]
    # In double precision some boundaries come one bucket too early.
    starts = [8 * 3**bucket for bucket in range(8)]
    assert find_bucket_starts(16, 8 * 3**8) == [*range(8), *starts]
    numbers = [by_logarithms(start, 16, 8 * 3**8) for start in starts]
    assert numbers != list(range(8, 16))


@pytest.mark.parametrize(
    ("num_buckets", "max_distance"), [(32, 128), (16, 100), (6, 50), (32, 20)]
)
def test_both_rules_of_buckets(num_buckets, max_distance):
    arguments = {"num_buckets": num_buckets, "max_distance": max_distance}
    steps, half = np.arange(-300, 301), num_buckets // 2
    causal = [
        by_logarithms(max(-step, 0), num_buckets, max_distance)
        for step in steps
    ]
    both = [
        by_logarithms(abs(step), half, max_distance) + half * int(step > 0)
        for step in steps
    ]
    # Fractions of distances do not count.
    fractions = np.where(steps < 0, -0.75, 0.75) * (steps != 0)
    for keys, query in ((1000 + steps, 1000), (1000 + steps + fractions, 1e3)):
        assert buckets(query, keys, causal=True, **arguments) == causal
        assert buckets(query, keys, **arguments) == both


def test_wrong_buckets_raise():
    with pytest.raises(ValueError, match=r"num_buckets .* got 7"):
        T5Bias(num_buckets=7)
    with pytest.raises(ValueError, match=r"max_distance .* = 16, .* got 16"):
        T5Bias(max_distance=16)
