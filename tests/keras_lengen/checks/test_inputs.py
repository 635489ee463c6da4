"""Readers of positions, lengths and masks."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_lengen.checks.guards import INVALID_POSITION, mark_like
from keras_lengen.checks.inputs import (
    as_signed,
    compare_sizes,
    is_pair,
    read_index,
    read_lengths,
    read_mask,
    read_positions,
    read_reference_length,
    read_token_ids,
)
from keras_lengen.layers import OrdinalPositions
from tests.keras_lengen.checks.test_guards import compiled

NAN = float("nan")
TOKENS = np.zeros((2, 5, 3), "float32")
SYMBOL = keras.KerasTensor((None, None, 3))


def test_sizes():
    assert compare_sizes(2, 2) is True
    assert compare_sizes(2, 3) is False
    assert compare_sizes(None, 3) is True
    assert not compare_sizes(ops.array(2), 3)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_signed_integers_are_the_same_ones(dtype):
    largest = np.array(min(np.iinfo(dtype).max, 2**32), dtype)
    assert int(as_signed(ops.convert_to_tensor(largest))) == largest


@pytest.mark.parametrize(
    "positions",
    [
        range(5),
        [0.0, 0.5, 1.0, 1.5, 2.0],
        np.arange(5, dtype="uint8"),
        np.zeros((2, 5)),
        [[4, 3, 2, 1, 0]],
        ops.array([-3, 0, 1, 2, 2**24]),
    ],
)
def test_right_positions(positions):
    checked = read_positions(positions, TOKENS)
    np.testing.assert_array_equal(
        ops.broadcast_to(checked, (2, 5)),
        np.broadcast_to(np.asarray(positions), (2, 5)),
    )


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ("x", "numbers of shape .* got 'x'"),
        (None, "got None"),
        (3, r"shape \(T,\) or \(B, T\); got \(\)"),
        (np.ones((1, 2, 5)), r"got \(1, 2, 5\)"),
        ([True] * 5, r"got \[True"),
        (range(4), "one number for each token: got 4 for 5 tokens"),
        (np.ones((3, 5)), "got 3 rows for a batch of 2"),
        ([0, 1, 2, 3, NAN], "finite numbers .* to nan"),
        ([0, 1, 2, 3, 2**24 + 1], "merges neighbours; got .* 0 to 16777217"),
        ([0, 1, 2, 3, 2**40], "got .*1099511627776"),
    ],
)
def test_wrong_positions(positions, message):
    with pytest.raises(ValueError, match=f"^key_positions .*{message}"):
        read_positions(positions, TOKENS, name="key_positions")


def test_invalid_positions_stay_invalid():
    positions = [INVALID_POSITION] * 5
    np.testing.assert_array_equal(read_positions(positions, TOKENS), positions)


def test_pairs():
    assert is_pair(([0, 1], [0, 1]))
    assert is_pair([np.ones(3), ops.ones(3)])
    assert not is_pair(np.ones((2, 3)))
    assert not is_pair([0, 1])
    rows, columns = read_positions(([0, 1, 2, 3, 4], [[0] * 5]), TOKENS)
    assert rows.shape == columns.shape == (5,)


@pytest.mark.parametrize("lengths", [0, 5, [0, 5], np.array([1, 2], "uint8")])
def test_right_lengths(lengths):
    checked = read_lengths(lengths, TOKENS)
    assert checked.dtype == tf.int32
    np.testing.assert_array_equal(checked, lengths)
    assert read_lengths(None, TOKENS) is None


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (6, "from 0 to the 5 tokens .* got 6"),
        ([-1, 2], r"got \[-1  2\]"),
        (np.array([2**32 + 1, 2]), "must be integers"),
        ([1.0, 2.0], "must be integers, .* got float"),
        ([1, 2, 3], "got 3 for a batch of 2"),
        ([[1, 2]], r"shape \(\) or \(B,\); got \(1, 2\)"),
        (True, "got True"),
        ("x", "got 'x'"),
    ],
)
def test_wrong_lengths(lengths, message):
    with pytest.raises(ValueError, match=f"^target_lengths .*{message}"):
        read_lengths(lengths, TOKENS, name="target_lengths")


def test_wrong_lengths_of_a_program_stay_wrong():
    def again(lengths):
        checked = read_lengths(read_lengths(lengths, TOKENS), TOKENS)
        return mark_like(ops.ones((2, 1)), checked)

    wrong = np.array([2**32 + 1, 3], "int64")
    np.testing.assert_array_equal(
        compiled(again, wrong, jit_compile=True), [[NAN], [1]]
    )


@pytest.mark.parametrize("length", [1, 0.5, [3, 4.5]])
def test_right_reference_lengths(length):
    checked = read_reference_length(length, TOKENS)
    assert checked.dtype == tf.float32
    np.testing.assert_array_equal(checked, np.asarray(length, "float32"))


@pytest.mark.parametrize("length", [0, -1, NAN, float("inf"), [1, 0], [1] * 3])
def test_wrong_reference_lengths(length):
    with pytest.raises(ValueError, match=r"^length must be .* got"):
        read_reference_length(length, TOKENS, name="length")


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8"])
def test_right_masks(dtype):
    mask = np.tri(2, 5, dtype=dtype)
    checked, guarded = read_mask(mask, TOKENS)
    assert guarded is TOKENS
    assert checked.dtype == tf.bool
    np.testing.assert_array_equal(checked, mask)
    assert read_mask(None, TOKENS) == (None, TOKENS)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones((3, 5), bool), "got 3 for 2 examples"),
        (np.ones((2, 4), bool), "got 4 for 5 tokens"),
        (np.ones(5, bool), r"got \(5,\)"),
        (np.zeros((2, 5)), "numbers to add to scores, or mask > 0 for zeros"),
        ("x", "truth values"),
    ],
)
def test_wrong_masks(mask, message):
    with pytest.raises(ValueError, match=f"^padding_mask must .*{message}"):
        read_mask(mask, TOKENS)


@pytest.mark.parametrize("index", [0, np.int64(3), np.array(3), ops.array(3)])
def test_right_indices(index):
    assert read_index("start_index", index) == index


@pytest.mark.parametrize(
    "index", [-1, 1.0, True, None, "x", 2**25, [1], ops.ones(2), ops.ones(())]
)
def test_wrong_indices(index):
    with pytest.raises(
        ValueError, match=r"^start_index must be an integer from"
    ):
        read_index("start_index", index)


def test_symbols_are_checked_by_their_shapes():
    lengths = keras.KerasTensor((None,), dtype="int32")
    assert read_lengths(lengths, SYMBOL) is lengths
    positions = keras.KerasTensor((None, None))
    assert read_positions(positions, SYMBOL) is positions
    with pytest.raises(ValueError, match="positions must have shape"):
        read_positions(SYMBOL, SYMBOL)


@pytest.mark.parametrize(
    "inputs", ["x", 3, [[1.0]], np.array([["x"]]), np.array([[None]])], ids=repr
)
def test_layers_name_what_keras_cannot_convert(inputs):
    with pytest.raises(
        ValueError, match=r"^inputs must be a tensor of numbers"
    ):
        OrdinalPositions()(inputs)


def test_token_ids():
    ids = np.array([[0, 1], [3, 2]])
    found = read_token_ids("token_ids", ids, 4)
    assert found.dtype == tf.int32
    np.testing.assert_array_equal(found, ids)
    for wrong, message in (
        (ids + 1, "0 to 3, below vocabulary_size; got ids from 1 to 4"),
        (ids[0], r"shape \(B, T\); got \(2,\)"),
        (ids / 2, "integers; got float"),
        ("x", "got 'x'"),
    ):
        with pytest.raises(ValueError, match=f"^token_ids must .*{message}"):
            read_token_ids("token_ids", wrong, 4)


def test_examples_with_wrong_ids_are_invalid():
    ids = np.array([[0, 1], [4, 2]])
    found = compiled(
        lambda ids: read_token_ids("token_ids", ids, 4), ids, jit_compile=True
    )
    np.testing.assert_array_equal(found, [[0, 1], [INVALID_POSITION] * 2])
