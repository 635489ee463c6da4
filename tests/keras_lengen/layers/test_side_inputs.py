import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_lengen.layers import OrdinalPositions
from keras_lengen.layers.encodings.base import expand_positions
from keras_lengen.layers.side_inputs import (
    INVALID_POSITION,
    as_signed,
    both,
    check_index,
    check_lengths,
    check_padding_mask,
    check_positions,
    check_reference_length,
    check_same_size,
    compare_sizes,
    demand,
    find_numbers,
    is_pair,
    where_holds,
)

NAN = float("nan")
TOKENS = np.zeros((2, 5, 3), "float32")
SYMBOL = keras.KerasTensor((None, None, 3))


def compiled(function, *arrays, jit_compile=False):
    """What a program makes that was compiled for arrays of any sizes."""
    signature = [
        tf.TensorSpec([None] * np.ndim(array), np.asarray(array).dtype)
        for array in arrays
    ]
    program = tf.function(
        function, input_signature=signature, jit_compile=jit_compile
    )
    return program(*map(tf.constant, arrays))


def test_what_is_known_raises_at_once():
    assert demand(True, "no") is True
    assert demand(ops.convert_to_tensor([True, True]), "no") is True
    for holds in (False, np.array([True, False]), ops.ones(2) > [0, 2]):
        with pytest.raises(ValueError, match=r"^got 3 for \[1 2\]\.$"):
            demand(holds, "got ", "3", " for ", ops.array([1, 2]), ".")


def test_symbols_demand_nothing():
    assert demand(keras.KerasTensor((2,), dtype="bool"), "no") is True


@pytest.mark.parametrize("jit_compile", [False, True])
def test_what_only_a_run_knows(jit_compile):
    def positive(numbers):
        return where_holds(demand(numbers > 0, "numbers: ", numbers), numbers)

    right, wrong = np.ones(2, "float32"), np.array([-1, 1], "float32")
    assert np.isfinite(compiled(positive, right, jit_compile=jit_compile)).all()
    if jit_compile:
        assert np.isnan(compiled(positive, wrong, jit_compile=True)).all()
        return
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"numbers: .*-1"):
        compiled(positive, wrong)


def test_an_assertion_comes_before_what_would_fail_in_its_place():
    def joined(first, second):
        holds = check_same_size(0, first=first, second=second)
        return where_holds(holds, first) + second

    with pytest.raises(tf.errors.InvalidArgumentError, match="equally many"):
        compiled(joined, np.ones(2, "float32"), np.ones(3, "float32"))


def test_both():
    holds = ops.array([True, False])
    assert both(True, True) is True
    assert both(True, holds) is holds
    assert both(holds, True) is holds
    assert both(holds, True ^ holds).numpy().tolist() == [False, False]


@pytest.mark.parametrize(
    ("holds", "shape", "expected"),
    [
        (False, (2,), [NAN, NAN]),
        ([True, False], (2, 1), [[1], [NAN]]),
        ([True, False], (3,), [NAN] * 3),
        ([True, True], (3,), [1] * 3),
    ],
)
def test_where_conditions_do_not_hold(holds, shape, expected):
    holds = ops.array(holds)
    floats = where_holds(holds, ops.ones(shape))
    np.testing.assert_array_equal(floats, expected)
    integers = where_holds(holds, ops.ones(shape, "uint8"))
    assert integers.dtype == tf.int32
    np.testing.assert_array_equal(expand_positions(integers, 0), expected)
    untouched = ops.ones(shape)
    assert where_holds(True, untouched) is untouched


def test_known_numbers():
    assert find_numbers(3) == 3
    assert find_numbers(ops.ones(2)).tolist() == [1, 1]
    assert find_numbers(keras.KerasTensor((2,))) is None
    assert compiled(
        lambda x: ops.ones(()) * (find_numbers(x) is None), np.ones(2)
    )


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
    checked = check_positions(positions, TOKENS)
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
        check_positions(positions, TOKENS, name="key_positions")


def test_invalid_positions_stay_invalid():
    positions = [INVALID_POSITION] * 5
    np.testing.assert_array_equal(check_positions(positions, TOKENS), positions)


def test_pairs():
    assert is_pair(([0, 1], [0, 1]))
    assert is_pair([np.ones(3), ops.ones(3)])
    assert not is_pair(np.ones((2, 3)))
    assert not is_pair([0, 1])
    rows, columns = check_positions(([0, 1, 2, 3, 4], [[0] * 5]), TOKENS)
    assert rows.shape == columns.shape == (5,)


@pytest.mark.parametrize("lengths", [0, 5, [0, 5], np.array([1, 2], "uint8")])
def test_right_lengths(lengths):
    checked, holds = check_lengths(lengths, TOKENS)
    assert holds is True
    assert checked.dtype == tf.int32
    np.testing.assert_array_equal(checked, lengths)
    assert check_lengths(None, TOKENS) == (None, True)


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
        check_lengths(lengths, TOKENS, name="target_lengths")


def test_wrong_lengths_of_a_program_stay_wrong():
    def again(lengths):
        checked, _ = check_lengths(lengths, TOKENS)
        return where_holds(check_lengths(checked, TOKENS)[1], ops.ones((2, 1)))

    wrong = np.array([2**32 + 1, 3], "int64")
    np.testing.assert_array_equal(
        compiled(again, wrong, jit_compile=True), [[NAN], [1]]
    )


@pytest.mark.parametrize("length", [1, 0.5, [3, 4.5]])
def test_right_reference_lengths(length):
    checked = check_reference_length(length, TOKENS)
    assert checked.dtype == tf.float32
    np.testing.assert_array_equal(checked, np.asarray(length, "float32"))


@pytest.mark.parametrize("length", [0, -1, NAN, float("inf"), [1, 0], [1] * 3])
def test_wrong_reference_lengths(length):
    with pytest.raises(ValueError, match=r"^length must be .* got"):
        check_reference_length(length, TOKENS, name="length")


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8"])
def test_right_masks(dtype):
    mask = np.tri(2, 5, dtype=dtype)
    checked, holds = check_padding_mask(mask, TOKENS)
    assert holds is True
    assert checked.dtype == tf.bool
    np.testing.assert_array_equal(checked, mask)
    assert check_padding_mask(None, TOKENS) == (None, True)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones((3, 5), bool), "got 3 for 2 examples"),
        (np.ones((2, 4), bool), "got 4 for 5 tokens"),
        (np.ones(5, bool), r"got \(5,\)"),
        (np.zeros((2, 5)), "numbers to add to scores"),
        ("x", "truth values"),
    ],
)
def test_wrong_masks(mask, message):
    with pytest.raises(ValueError, match=f"^padding_mask must .*{message}"):
        check_padding_mask(mask, TOKENS)


@pytest.mark.parametrize("index", [0, np.int64(3), np.array(3), ops.array(3)])
def test_right_indices(index):
    assert check_index("start_index", index) == index


@pytest.mark.parametrize(
    "index", [-1, 1.0, True, None, "x", 2**25, [1], ops.ones(2), ops.ones(())]
)
def test_wrong_indices(index):
    with pytest.raises(
        ValueError, match=r"^start_index must be an integer from"
    ):
        check_index("start_index", index)


def test_symbols_are_checked_by_their_shapes():
    lengths = keras.KerasTensor((None,), dtype="int32")
    assert check_lengths(lengths, SYMBOL) == (lengths, True)
    positions = keras.KerasTensor((None, None))
    assert check_positions(positions, SYMBOL) is positions
    with pytest.raises(ValueError, match="positions must have shape"):
        check_positions(SYMBOL, SYMBOL)


@pytest.mark.parametrize(
    "inputs", ["x", 3, [[1.0]], np.array([["x"]]), np.array([[None]])], ids=repr
)
def test_layers_name_what_keras_cannot_convert(inputs):
    with pytest.raises(
        ValueError, match=r"^inputs must be a tensor of numbers"
    ):
        OrdinalPositions()(inputs)
