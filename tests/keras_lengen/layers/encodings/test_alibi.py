import numpy as np
import pytest

from keras_lengen.layers import (
    ALiBi,
    CoupledPositions,
    RandomizedALiBi,
    RandomizedPositions,
)

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

ASYMMETRIC = [
    [0, -1, -2, -3],
    [-0.5, 0, -1, -2],
    [-1.5, -0.5, 0, -1],
    [-2.5, -1.5, -0.5, 0],
]
SYMMETRIC = [[0, -1, -2, -3], [-1, 0, -1, -2], [-2, -1, 0, -1], [-3, -2, -1, 0]]


def queries(num_heads, tokens=4):
    return np.ones((1, tokens, num_heads, 4), "float32")


@pytest.mark.parametrize("num_heads", SLOPES)
def test_slopes(num_heads):
    """The bias of a key one token ahead is minus the slope."""
    bias = ALiBi()(queries(num_heads, tokens=2))
    np.testing.assert_allclose(
        bias[0, :, 0, 1], [-slope for slope in SLOPES[num_heads]], rtol=1e-6
    )


@pytest.mark.parametrize("alibi_bias_max", [0.5, 4, 8, 16])
@pytest.mark.parametrize(
    ("num_heads", "exponents"),
    [
        (1, [1]),
        (4, [1 / 4, 1 / 2, 3 / 4, 1]),
        # Those of two heads, then the first of four.
        (3, [1 / 2, 1, 1 / 4]),
        (6, [1 / 4, 1 / 2, 3 / 4, 1, 1 / 8, 3 / 8]),
    ],
)
def test_slopes_end_at_the_largest_bias(alibi_bias_max, num_heads, exponents):
    encoding = ALiBi(alibi_bias_max=alibi_bias_max)
    bias = encoding(queries(num_heads, tokens=2))
    slopes = 2.0 ** (-alibi_bias_max * np.array(exponents))
    np.testing.assert_allclose(bias[0, :, 0, 1], -slopes, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "causal", "pattern"),
    [
        ({}, False, ASYMMETRIC),
        ({"asymmetry": 0}, False, SYMMETRIC),
        ({}, True, SYMMETRIC),
    ],
)
def test_pattern(arguments, causal, pattern):
    bias = ALiBi(**arguments)(queries(8), causal=causal)
    assert bias.shape == (1, 8, 4, 4)
    for slope, head in zip(SLOPES[8], bias[0], strict=True):
        np.testing.assert_allclose(head, slope * np.array(pattern))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("distances", ["positions", "sampled"])
def test_gaps(causal, distances):
    positions = [0, 2, 5, 11]
    bias = ALiBi(distances=distances)(
        queries(1), positions=np.array(positions), causal=causal
    )
    for i, query_position in enumerate(positions):
        for j, key_position in enumerate(positions):
            distance = abs(query_position - key_position)
            if distances == "sampled":
                distance = positions[abs(i - j)]
            if j < i and not causal:
                distance -= 0.5
            assert bias[0, 0, i, j] == -distance * 2**-8


@pytest.mark.parametrize(
    ("encoding", "nearer"),
    [
        (ALiBi(sampler=CoupledPositions(items=[1], end_of_prompt=2)), 0.5),
        (
            ALiBi(sampler=RandomizedPositions(max_position=9, ordered=False)),
            0.5,
        ),
        (ALiBi(sampler=RandomizedPositions(max_position=9)), 0),
        (RandomizedALiBi(distances="positions"), 0),
    ],
)
def test_sides_differ_in_causal_attention_if_order_is_not_kept(
    encoding, nearer
):
    bias = encoding(queries(8), positions=np.array([2, 1, 3, 1]), causal=True)
    # The keys of the last query but one, at position 3, and of the second, at
    # position 1.
    past = -np.array([1 - nearer, 2 - nearer, 0, 2 - nearer]) / 2
    np.testing.assert_allclose(bias[0, 0, 2], past)
    np.testing.assert_allclose(bias[0, 0, 1], [-0.5, 0, -1, 0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"distances": "both"}, "distances .* 'both'"),
        ({"alibi_bias_max": 0}, "alibi_bias_max .* above 0 .* got 0"),
        ({"alibi_bias_max": 127}, "alibi_bias_max .* at most 126; got 127"),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        ALiBi(**arguments)
