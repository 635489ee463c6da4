import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import BAM, ALiBi, MultiHeadAttention
from tests.keras_lengen.layers.encodings.table import random_inputs
from tests.keras_lengen.models.small import added_parameters

QUERY, KEY = random_inputs("bias")
RANDOM = np.random.default_rng(1)
EXPONENT, LOG_SCALE, MU = (
    np.array(values) for values in ([1.5, -0.25], [-1.0, 0.5], [0.75, -2.0])
)


def trained(*weights):
    encoding = BAM()
    encoding.build(QUERY.shape)
    encoding.set_weights([each.astype("float32") for each in weights])
    return encoding


def define(positions, exponent, log_scale, mu):
    """The formula of the paper, float64 `(..., H, T, S)`."""
    exponent, log_scale, mu = (
        each[:, None, None] for each in (exponent, log_scale, mu)
    )
    i, j = positions[..., None, :, None], positions[..., None, None, :]
    location = np.exp(mu) - np.exp(-mu)
    distances = abs(j - i - location) + 1e-5
    return -(distances**exponent) * np.exp(log_scale)


@pytest.mark.parametrize("shape", [(6,), (2, 6)])
@pytest.mark.parametrize("causal", [False, True])
def test_definition(shape, causal):
    positions = RANDOM.uniform(0, 2000, shape).round(1).astype("float32")
    encoding = trained(EXPONENT, LOG_SCALE, MU)
    bias = encoding(QUERY, KEY, positions=positions, causal=causal)
    expected = define(positions.astype("float64"), EXPONENT, LOG_SCALE, MU)
    assert bias.shape == (1 if len(shape) == 1 else 2, 2, 6, 6)
    np.testing.assert_allclose(
        bias, np.reshape(expected, bias.shape), rtol=1e-4
    )


def test_training_starts_from_alibi():
    query = np.ones((1, 9, 12, 4), "float32")
    np.testing.assert_allclose(
        BAM()(query), ALiBi(asymmetry=0)(query), atol=2e-5
    )


def test_the_center_is_where_the_penalty_is_smallest():
    # exp(mu) - exp(-mu) is -3 for one head and 2 for the other.
    mu = np.arcsinh(np.array([-3, 2]) / 2)
    bias = trained(np.ones(2), np.zeros(2), mu)(np.ones((1, 9, 2, 8)))
    np.testing.assert_array_equal(np.argmax(bias[0, :, 4], -1), [1, 6])


@pytest.mark.parametrize("exponent", [-30.0, 20.0])
def test_extreme_exponents_stay_finite(exponent):
    encoding = trained(np.full(2, exponent), np.zeros(2), np.zeros(2))
    weights = [weight.value for weight in encoding.weights]
    with tf.GradientTape() as tape:
        bias = encoding(QUERY, KEY, causal=True)
        total = tf.reduce_sum(tf.nn.softmax(bias)[..., 0])
    assert np.min(bias) > -1e9
    for part in tape.gradient(total, weights):
        assert np.isfinite(part).all()


def test_a_negative_exponent_attends_far_and_not_to_later_keys():
    encoding = trained(np.full(2, -6.0), np.zeros(2), np.zeros(2))
    attention = MultiHeadAttention(2, 8, encoding=encoding)
    x = np.zeros((1, 5, 16), "float32")
    _, weights = attention(
        x, x, use_causal_mask=True, return_attention_scores=True
    )
    first, *_, last = np.asarray(weights)[0, 0]
    np.testing.assert_allclose(first, [1, 0, 0, 0, 0])
    assert (np.diff(last) < 0).all()
    assert last[4] == 0


def test_gradients_where_tokens_share_a_position():
    encoding = trained(EXPONENT, LOG_SCALE, np.zeros(2))
    weights = [weight.value for weight in encoding.weights]
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(
            encoding(QUERY, KEY, positions=np.array([3, 3, 3, 3, 3, 7]))
        )
    gradients = tape.gradient(total, weights)
    # Of the 36 pairs, 10 are 4 apart, and the others at the center.
    distances, counts = np.array([1e-5, 4 + 1e-5]), np.array([26, 10])
    powers = counts[:, None] * distances[:, None] ** EXPONENT
    penalties = np.exp(LOG_SCALE) * powers
    np.testing.assert_allclose(
        gradients[0], -(np.log(distances) @ penalties), rtol=1e-4
    )
    np.testing.assert_allclose(gradients[1], -penalties.sum(0), rtol=1e-4)
    # As many keys are before as after their query.
    np.testing.assert_allclose(gradients[2], [0, 0], atol=1e-3)


def test_every_layer_has_its_own_weights():
    assert added_parameters(BAM(), num_heads=4, num_layers=3) == 3 * 4 * 3
