import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import T5Bias
from keras_lengen.layers.encodings.t5_bias import find_bucket_starts
from tests.keras_lengen.models.small import added_parameters

CAUSAL = [19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]
BIDIRECTIONAL = [12, 16, 23, 32, 46, 64, 91]
HEADS = 2


def buckets(query_position, key_positions, *, causal=False, **kwargs):
    """The buckets of keys, read from a table that holds their numbers."""
    encoding = T5Bias(**kwargs)
    keys = np.asarray(key_positions)
    key = np.ones((1, len(keys), HEADS, 4), "float32")
    encoding.build(key.shape)
    numbers = np.arange(encoding.num_buckets, dtype="float32")
    encoding.set_weights([np.stack([numbers, -numbers], axis=-1)])
    bias = encoding(
        key[:, :1],
        key,
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


@pytest.mark.parametrize(
    ("num_buckets", "max_distance"), [(32, 128), (16, 100), (6, 50), (32, 20)]
)
def test_both_rules(num_buckets, max_distance):
    arguments = {"num_buckets": num_buckets, "max_distance": max_distance}
    steps = np.arange(-300, 301)
    half = num_buckets // 2
    causal, both = [], []
    for step in steps:
        causal.append(by_logarithms(max(-step, 0), num_buckets, max_distance))
        one_side = by_logarithms(abs(step), half, max_distance)
        both.append(one_side + half * (step > 0))
    keys = 1000 + steps
    assert buckets(1000, keys, causal=True, **arguments) == causal
    assert buckets(1000, keys, **arguments) == both


def test_no_rounding_moves_a_boundary():
    starts = [8 * 3**bucket for bucket in range(8)]
    assert find_bucket_starts(16, 8 * 3**8) == [*range(8), *starts]
    # In double precision some of them come one bucket too early.
    numbers = [by_logarithms(start, 16, 8 * 3**8) for start in starts]
    assert numbers != list(range(8, 16))


@pytest.mark.parametrize("causal", [False, True])
def test_fractions_of_distances_do_not_count(causal):
    steps = np.array([-60, -19, -2, 0, 2, 8, 50])
    fractions = np.where(steps < 0, -0.75, 0.75)
    assert buckets(100.0, 100 + steps + fractions, causal=causal) == buckets(
        100, 100 + steps, causal=causal
    )


def test_each_example_has_its_own_positions():
    encoding = T5Bias()
    positions = np.array([[0, 3, 40], [5, 6, 7]])
    query = np.ones((2, 3, HEADS, 4), "float32")
    bias = encoding(query, positions=positions)
    for example, own in zip(bias, positions, strict=True):
        alone = encoding(query, positions=own)
        np.testing.assert_array_equal(example, alone[0])


def test_a_gradient_counts_the_pairs_of_a_bucket():
    encoding = T5Bias()
    query = np.ones((1, 4, HEADS, 4), "float32")
    encoding.build(query.shape)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(encoding(query, causal=True))
    gradient = tape.gradient(total, encoding.table.value)
    expected = np.zeros((32, HEADS))
    expected[:4] = np.array([[10], [3], [2], [1]])
    np.testing.assert_array_equal(tf.convert_to_tensor(gradient), expected)


@pytest.mark.parametrize(("share_layers", "copies"), [(True, 1), (False, 3)])
def test_layers_share_the_table_or_own_one(share_layers, copies):
    encoding = T5Bias(num_buckets=10, share_layers=share_layers)
    assert added_parameters(encoding, num_heads=4, num_layers=3) == 40 * copies


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_buckets": 7}, "num_buckets .* got 7"),
        ({"num_buckets": 2}, "num_buckets .* got 2"),
        ({"max_distance": 16}, "max_distance .* = 16, .* got 16"),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        T5Bias(**arguments)
