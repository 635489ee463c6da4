import numpy as np
import pytest

from keras_lengen.layers import ClippedBias
from tests.keras_lengen.models.small import added_parameters

HEADS, REACH = 3, 2
TABLE = np.random.default_rng(0).normal(size=(5, HEADS)).astype("float32")


def bias_at(query_positions, key_positions, *, causal=False, **kwargs):
    encoding = ClippedBias(max_distance=REACH, **kwargs)
    queries, keys = (
        np.ones((1, len(positions), HEADS, 4), "float32")
        for positions in (query_positions, key_positions)
    )
    encoding.build(queries.shape)
    encoding.set_weights([TABLE])
    bias = encoding(
        queries,
        keys,
        positions=np.array(query_positions),
        key_positions=np.array(key_positions),
        causal=causal,
    )
    return np.asarray(bias)[0]


def formula(query_position, key_position, head, *, slope=1.0, scale=20.0):
    step = key_position - query_position
    if slope is None and abs(step) > REACH:
        return -1e9
    near = int(min(max(step, -REACH), REACH))
    beyond = max(abs(step) - REACH, 0)
    return scale * TABLE[near + REACH, head] - (slope or 0) * beyond


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("arguments", "slope", "scale"),
    [
        ({}, 1.0, 20.0),
        ({"slope": 0.0}, 0.0, 20.0),
        ({"slope": None}, None, 20.0),
        ({"slope": 0.25, "table_scale": 1.0}, 0.25, 1.0),
    ],
)
def test_formula_on_both_sides(arguments, slope, scale, causal):
    """A key at a larger position counts like one at a smaller position."""
    queries, keys = [5, 0, 40], [7, 6, 5, 4, 1, 90, 41]
    expected = [
        [
            [
                formula(query, key, head, slope=slope, scale=scale)
                for key in keys
            ]
            for query in queries
        ]
        for head in range(HEADS)
    ]
    bias = bias_at(queries, keys, causal=causal, **arguments)
    np.testing.assert_allclose(bias, expected, rtol=1e-5, atol=1e-5)


def test_the_table_is_read_without_fractions():
    keys = np.array([8.5, 9.75, 10.0, 11.25, 14.5])
    expected = [formula(10.0, key, 1) for key in keys]
    bias = bias_at([10.0], keys)
    np.testing.assert_allclose(bias[1, 0], expected, rtol=1e-5)


def test_attention_to_near_keys_does_not_fade_in_long_sequences():
    shares = []
    for tokens in (50, 5000):
        weights = np.exp(bias_at([tokens], np.arange(tokens + 1))[:, 0])
        shares.append(weights[:, -5:] / weights.sum(-1, keepdims=True))
    np.testing.assert_allclose(*shares, rtol=1e-5)


@pytest.mark.parametrize(("share_layers", "copies"), [(True, 1), (False, 3)])
def test_layers_own_a_table_or_share_one(share_layers, copies):
    encoding = ClippedBias(share_layers=share_layers)
    assert added_parameters(encoding, num_heads=4, num_layers=3) == 36 * copies


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_distance": 0}, "max_distance .* got 0"),
        ({"slope": -1.0}, "slope .* got -1"),
        ({"table_scale": 0.0}, "table_scale .* got 0"),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        ClippedBias(**arguments)
