import numpy as np
import pytest

from keras_lengen.layers import InterpolatedPositions, RoPE


def positions(tokens, batch_size=2, *, call=None, **kwargs):
    sampler = InterpolatedPositions(**kwargs)
    result = np.asarray(sampler(np.zeros((batch_size, tokens)), **(call or {})))
    assert result.dtype == "float32"
    return result


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("tokens", [1, 19, 20])
def test_up_to_the_trained_length_tokens_are_counted(tokens, training):
    result = positions(tokens, train_length=20, call={"training": training})
    np.testing.assert_array_equal(result, np.arange(tokens))


@pytest.mark.parametrize("tokens", [21, 50, 1000])
def test_longer_sequences_fill_the_trained_range(tokens):
    result = positions(tokens, train_length=20)
    expected = [index * 20 / tokens for index in range(tokens)]
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert result.max() < 20


def test_each_example_goes_by_its_true_length():
    lengths = np.array([5, 8, 3])
    result = positions(9, 3, train_length=4, call={"lengths": lengths})
    ratios = np.array([[4 / 5], [4 / 8], [1]])
    np.testing.assert_allclose(result, ratios * np.arange(9), rtol=1e-6)
    one = positions(9, train_length=4, call={"lengths": np.array(5)})
    np.testing.assert_array_equal(one, result[0])


@pytest.mark.parametrize("reference", [np.array([16, 4]), np.array(16), 16])
def test_the_reference_length_wins_over_the_true_one(reference):
    result = positions(
        6,
        train_length=8,
        call={"lengths": np.array([6, 5]), "reference_length": reference},
    )
    ratio = np.minimum(1, 8 / np.reshape(reference, (-1, 1)))
    expected = np.broadcast_to(ratio * np.arange(6), (2, 6))
    np.testing.assert_allclose(np.broadcast_to(result, (2, 6)), expected)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("scaling_factor", [1, 2.5, 8])
def test_a_fixed_factor_knows_no_length(scaling_factor, training):
    result = positions(
        30,
        train_length=8,
        scaling_factor=scaling_factor,
        call={"lengths": np.array([30, 3]), "training": training},
    )
    np.testing.assert_allclose(
        result, np.arange(30) / scaling_factor, rtol=1e-6
    )


def test_padding_on_the_left_is_not_counted():
    encoding = RoPE(sampler=InterpolatedPositions(train_length=4))
    mask = np.arange(8) >= np.array([[3], [0]])
    result = np.asarray(encoding.sample_positions(np.zeros((2, 8)), mask=mask))
    np.testing.assert_allclose(result[0, 3:], np.arange(5) * 4 / 5)
    np.testing.assert_allclose(result[1], np.arange(8) / 2)


@pytest.mark.parametrize("scaling_factor", [None, 2])
def test_a_part_of_a_sequence_needs_positions(scaling_factor):
    sampler = InterpolatedPositions(
        train_length=4, scaling_factor=scaling_factor
    )
    query = np.ones((1, 3, 1, 8), "float32")
    with pytest.raises(ValueError, match=r"start_index=5.*Interp.*`positions`"):
        RoPE(sampler=sampler)(query, start_index=5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"train_length": 0}, "train_length .* got 0"),
        ({"train_length": 2.5}, "train_length .* got 2.5"),
        ({"train_length": 9, "scaling_factor": 0}, "scaling_factor .* got 0"),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        InterpolatedPositions(**arguments)
