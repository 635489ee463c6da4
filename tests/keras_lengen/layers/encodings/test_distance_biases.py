"""Biases that follow from the distance of two tokens and a few numbers a head.

What they have in common; each formula is the one of its paper, in double
precision.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import (
    BAM,
    NAPE,
    ALiBi,
    ClippedBias,
    HardALiBi,
    LogKERPLE,
    PowerKERPLE,
    RandomizedPositions,
    Sandwich,
)

RANDOM = np.random.default_rng(1)
HEADS = 3
A, P, MU = np.array([[0.5, 2, 1], [1.5, 0.25, 1], [0.75, -2, 0]])[
    ..., None, None
]
TABLE = RANDOM.normal(size=(5, HEADS))
SLOPES = {
    1: [2**-8],
    2: [2**-4, 2**-8],
    3: [2**-4, 2**-8, 2**-2],
    4: [2**-2, 2**-4, 2**-6, 2**-8],
    6: [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3],
    8: [2**-head for head in range(1, 9)],
    12: [
        *(2**-head for head in range(1, 9)),
        *(2 ** -(head + 0.5) for head in range(4)),
    ],
    16: [2 ** (-head / 2) for head in range(1, 17)],
}


# The bias of steps from queries to keys, by the weights of an encoding.
KERNELS = {
    PowerKERPLE: lambda steps, a, p: -a * abs(steps) ** p,
    LogKERPLE: lambda steps, a, p: -p * np.log(1 + a * abs(steps)),
    BAM: lambda steps, exponent, log_scale, mu: (
        -np.exp(log_scale)
        * (abs(steps - np.exp(mu) + np.exp(-mu)) + 1e-5) ** exponent
    ),
}
WEIGHTS = {PowerKERPLE: [A, P], LogKERPLE: [A, P], BAM: [P, MU, A]}


def of_heads(numbers):
    return np.array(numbers)[:, None, None]


def read_table(steps, slope, scale):
    """The table's entry for near keys, and a line beyond."""
    steps = steps[..., 0, :, :]
    near = np.clip(steps, -2, 2).astype(int) + 2
    beyond = np.maximum(abs(steps) - 2, 0)
    bias = [
        np.where(beyond > 0, -1e9, scale * TABLE[near, head])
        if slope is None
        else scale * TABLE[near, head] - slope * beyond
        for head in range(HEADS)
    ]
    return np.stack(bias, axis=-3)


def sum_cosines(steps, dimension):
    rates = 10000.0 ** (-2 * np.arange(dimension // 2) / dimension)
    total = np.cos(steps[..., None] * rates).sum(axis=-1) - dimension / 2
    return HEADS / 8 / of_heads([1, 2, 3]) * total


# By encoding: its weights, and its bias (..., H, T, S) of steps (..., 1, T, S)
# from queries to keys. Asymmetries are 0.
FORMULAS = {
    "ALiBi": (
        ALiBi(asymmetry=0),
        [],
        lambda steps: -of_heads(SLOPES[3]) * abs(steps),
    ),
    "NAPE": (NAPE(), [], lambda steps: -of_heads([1, 0, 0]) * abs(steps)),
    "HardALiBi": (
        HardALiBi(windowed_heads=2),
        [],
        lambda steps: np.where(abs(steps) > of_heads([0, 1, np.inf]), -1e9, 0),
    ),
    **{
        cls.__name__: (
            cls(),
            WEIGHTS[cls],
            lambda steps, cls=cls: KERNELS[cls](steps, *WEIGHTS[cls]),
        )
        for cls in KERNELS
    },
    **{
        f"Sandwich of {dimension}": (
            Sandwich(**arguments),
            [],
            lambda steps, dimension=dimension: sum_cosines(steps, dimension),
        )
        for dimension, arguments in ((2, {"dimension": 2}), (128, {}))
    },
    **{
        f"ClippedBias {arguments}": (
            ClippedBias(max_distance=2, **arguments),
            [TABLE],
            lambda steps, numbers=numbers: read_table(steps, *numbers),
        )
        for arguments, numbers in (
            ({}, (1.0, 20.0)),
            ({"slope": 0.0}, (0.0, 20.0)),
            ({"slope": None}, (None, 20.0)),
            ({"slope": 0.25, "table_scale": 1.0}, (0.25, 1.0)),
        )
    },
}


def make_features(tokens, heads=HEADS, batch_size=2):
    return np.ones((batch_size, tokens, heads, 4), "float32")


def with_weights(encoding, weights):
    if not encoding.built:
        encoding.build((None, None, HEADS, 4))
    shapes = [weight.shape for weight in encoding.weights]
    encoding.set_weights(
        [np.reshape(w, shape) for w, shape in zip(weights, shapes, strict=True)]
    )
    return encoding


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "positions",
    [
        np.array([0, 1, 2, 3, 5, 4]),
        np.array([[40, 0, 1.5, 7, 900, 901], [5, 6, 7, 8, 9, 2000.25]]),
    ],
    ids=["shared", "own"],
)
def test_it_is_the_formula_of_the_paper(name, causal, positions):
    encoding, weights, formula = FORMULAS[name]
    encoding = with_weights(encoding, weights)
    features = make_features(6)
    steps = positions[..., None, None, :] - positions[..., None, :, None]
    expected = formula(steps).reshape(-1, HEADS, 6, 6)
    atol = 2e-3 if name.startswith("Sandwich") else 1e-5
    bias = encoding(features, positions=positions, causal=causal)
    np.testing.assert_allclose(bias, expected, rtol=1e-4, atol=atol)
    # Some of the queries.
    bias = encoding(
        features[:, :2],
        features,
        positions=positions[..., 3:5],
        key_positions=positions,
        causal=causal,
    )
    np.testing.assert_allclose(bias, expected[:, :, 3:5], rtol=1e-4, atol=atol)


def slopes_of(encoding, heads):
    """Minus the bias of a key one token ahead."""
    return -np.asarray(encoding(make_features(2, heads=heads)))[0, :, 0, 1]


@pytest.mark.parametrize("heads", SLOPES)
def test_slopes(heads):
    np.testing.assert_allclose(
        slopes_of(ALiBi(), heads), SLOPES[heads], rtol=1e-6
    )
    # The default ends at 2 ** -8.
    for largest in (0.5, 16):
        np.testing.assert_allclose(
            slopes_of(ALiBi(alibi_bias_max=largest), heads),
            np.array(SLOPES[heads]) ** (largest / 8),
            rtol=1e-6,
        )
    near = [1 / (1 + head) for head in range(max(heads // 2, 1))]
    expected = np.pad(near, [0, heads - len(near)])
    np.testing.assert_allclose(slopes_of(NAPE(), heads), expected, rtol=1e-6)
    hidden = np.arange(heads) < max(heads // 2, 1)
    windows = slopes_of(HardALiBi(), heads)
    np.testing.assert_array_equal(windows > 0, hidden & (np.arange(heads) < 1))


UNORDERED = RandomizedPositions(max_position=9, ordered=False)


@pytest.mark.parametrize("cls", [ALiBi, PowerKERPLE, LogKERPLE])
@pytest.mark.parametrize(
    ("asymmetry", "causal", "sampler", "distances"),
    [
        (0, False, None, [5, 3, 0, 6]),
        (0.5, False, None, [4.5, 2.5, 0, 6]),
        (0.5, True, None, [5, 3, 0, 6]),
        (0.5, True, RandomizedPositions(max_position=99), [5, 3, 0, 6]),
        # Visible keys may have larger positions.
        (0.5, True, UNORDERED, [4.5, 2.5, 0, 6]),
    ],
)
def test_past_keys_are_nearer_unless_later_ones_are_masked(
    cls, asymmetry, causal, sampler, distances
):
    encoding = cls(asymmetry=asymmetry, sampler=sampler)
    positions = np.array([0, 2, 5, 11])
    bias = encoding(make_features(4), positions=positions, causal=causal)
    # The same distances ahead of a token at 0, where no key is past.
    expected = encoding(
        make_features(1),
        make_features(4),
        positions=np.array([0]),
        key_positions=np.array(distances),
    )
    np.testing.assert_allclose(bias[0, :, 2], expected[0, :, 0], rtol=1e-6)


@pytest.mark.parametrize("cls", [PowerKERPLE, LogKERPLE])
def test_weights_of_kernels_start_and_stay_in_their_range(cls):
    encoding = cls()
    encoding.build((None, None, 4000, 4))
    for weight, top in ((encoding.a, 1), (encoding.p, 2)):
        numbers = np.asarray(weight)
        assert numbers.min() == np.float32(0.01)
        assert 0.99 * top < numbers.max() < top
        assert abs(numbers.mean() - top / 2) < 0.03 * top
    encoding = with_weights(cls(), np.ones((2, HEADS)))
    optimizer = keras.optimizers.SGD(1.0)
    gradient = keras.ops.convert_to_tensor([100.0, 0.25, -100.0])
    optimizer.apply([gradient, gradient], encoding.trainable_variables)
    highest = {PowerKERPLE: 2, LogKERPLE: 101}[cls]
    np.testing.assert_allclose(encoding.a, [0.01, 0.75, 101])
    np.testing.assert_allclose(encoding.p, [0.01, 0.75, highest])


@pytest.mark.parametrize("exponent", [-30.0, 20.0])
def test_extreme_exponents_stay_finite(exponent):
    weights = np.array([[exponent] * HEADS, [0] * HEADS, [0] * HEADS])
    encoding = with_weights(BAM(), weights)
    with tf.GradientTape() as tape:
        bias = encoding(make_features(6), causal=True)
        total = tf.reduce_sum(tf.nn.softmax(bias)[..., 0])
    assert np.min(bias) > -1e9
    for part in tape.gradient(total, [w.value for w in encoding.weights]):
        assert np.isfinite(part).all()


@pytest.mark.parametrize("cls", KERNELS)
def test_gradients_where_tokens_share_a_position(cls):
    """Those of the formula, by central differences in double precision."""
    weights = [P, MU, 0 * A] if cls is BAM else WEIGHTS[cls]
    encoding = with_weights(cls(), weights)
    positions = np.array([3.0, 3, 3, 3, 3, 7])
    features = make_features(6, batch_size=1)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(encoding(features, positions=positions))
    found = tape.gradient(total, [each.value for each in encoding.weights])
    steps = positions[None, :] - positions[:, None]
    for index, gradient in enumerate(found):
        above, below = (
            KERNELS[cls](
                steps,
                *(
                    each + change * (place == index)
                    for place, each in enumerate(weights)
                ),
            ).sum(axis=(-2, -1))
            for change in (1e-6, -1e-6)
        )
        expected = (above - below) / 2e-6
        np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-3)


def test_the_gradient_of_a_shared_position_is_finite():
    encoding = with_weights(PowerKERPLE(), [A, P])
    positions = tf.constant([3.0, 3, 3, 3, 3, 7])
    with tf.GradientTape() as tape:
        tape.watch(positions)
        bias = encoding(make_features(6, batch_size=1), positions=positions)
        total = tf.reduce_sum(bias)
    # Pairs at one position have no slope.
    slope = 2 * np.sum(A * P * 4 ** (P - 1))
    found = tape.gradient(total, positions)
    np.testing.assert_allclose(found, [*[slope] * 5, -5 * slope], rtol=1e-5)


def test_wrong_arguments_raise():
    with pytest.raises(ValueError, match=r"windowed_heads=3 .* heads, 2"):
        HardALiBi(windowed_heads=3).build((1, 4, 2, 8))
    with pytest.raises(ValueError, match=r"dimension is 127: .* even"):
        Sandwich(dimension=127)
