import numpy as np
import pytest

from keras_lengen.layers import Sandwich

RANDOM = np.random.default_rng(1)
HEADS = 8


def queries(tokens, batch_size=1):
    return np.ones((batch_size, tokens, HEADS, 4), "float32")


def definition(positions, dimension):
    """The bias, by the formula in double precision, `(..., H, T, S)`."""
    steps = positions[..., :, None] - positions[..., None, :]
    total = -dimension / 2
    for pair in range(dimension // 2):
        total = total + np.cos(steps * 10000 ** (-2 * pair / dimension))
    return np.stack([HEADS / (8 * h) * total for h in range(1, HEADS + 1)], -3)


def test_published_values():
    positions = np.array([0, 1, 2, 10, 100, 1000])
    bias = Sandwich()(queries(6), positions=positions)
    # The ratio of the first of eight heads is 1.
    np.testing.assert_allclose(
        bias[0, 0, 0] + 64,
        [64, 62.094, 57.382, 42.820, 30.544, 10.178],
        atol=1e-3,
    )


@pytest.mark.parametrize("dimension", [2, 32, 128])
@pytest.mark.parametrize("shape", [(6,), (2, 6)])
@pytest.mark.parametrize("causal", [False, True])
def test_definition(dimension, shape, causal):
    positions = RANDOM.integers(0, 8000, shape) / 4
    bias = Sandwich(dimension=dimension)(
        queries(6, batch_size=2), positions=positions, causal=causal
    )
    expected = definition(positions, dimension).reshape(-1, HEADS, 6, 6)
    assert bias.shape == expected.shape
    np.testing.assert_allclose(bias, expected, atol=2e-3)


def test_far_positions_are_as_exact_as_near_ones():
    positions = 100_000 + np.array([0, 1, 5, 50, 200])
    bias = Sandwich()(queries(5), positions=positions)
    expected = definition(positions, 128)
    np.testing.assert_allclose(bias[0], expected, atol=2e-4)


def test_other_keys_than_queries():
    positions = np.array([2, 3, 7, 8, 20, 90])
    bias = Sandwich()(
        queries(2),
        queries(6),
        positions=positions[3:5],
        key_positions=positions,
    )
    expected = definition(positions, 128)[:, 3:5]
    np.testing.assert_allclose(bias[0], expected, atol=2e-4)


@pytest.mark.parametrize(
    ("dimension", "message"),
    [(127, "dimension is 127: .* even"), (1, "from 2 to 65536, .* got 1")],
)
def test_wrong_dimensions_raise(dimension, message):
    with pytest.raises(ValueError, match=message):
        Sandwich(dimension=dimension)
