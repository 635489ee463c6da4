"""Conditions that are known now, or only when a compiled program runs."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_lengen.checks.guards import (
    INVALID_POSITION,
    find_numbers,
    guard,
    mark_by_positions,
    mark_like,
)
from keras_lengen.checks.inputs import guard_same_size

NAN = float("nan")


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
    tensor = ops.ones(2)
    for holds in (True, np.array([True, True]), ops.ones(2) > 0):
        assert guard(tensor, holds, "no") is tensor
    for holds in (False, np.array([True, False]), ops.ones(2) > [0, 2]):
        with pytest.raises(ValueError, match=r"^got 3 for \[1 2\]\.$"):
            guard(tensor, holds, "got ", 3, " for ", ops.array([1, 2]), ".")


def test_parts_of_a_message_are_computed_if_they_are_needed():
    def fail():
        raise AssertionError

    guard((), True, fail)
    with pytest.raises(ValueError, match=r"^got 5$"):
        guard((), False, "got ", lambda: 5)


def test_symbols_are_not_guarded():
    symbol = keras.KerasTensor((2,), dtype="bool")
    assert guard(symbol, symbol, "no") is symbol


@pytest.mark.parametrize("jit_compile", [False, True])
def test_what_only_a_run_knows(jit_compile):
    def positive(numbers):
        return guard(numbers, numbers > 0, "numbers: ", numbers)

    right, wrong = np.ones(2, "float32"), np.array([-1, 1], "float32")
    assert np.isfinite(compiled(positive, right, jit_compile=jit_compile)).all()
    if jit_compile:
        assert np.isnan(compiled(positive, wrong, jit_compile=True)[0])
        return
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"numbers: .*-1"):
        compiled(positive, wrong)


def test_an_assertion_comes_before_what_would_fail_in_its_place():
    def joined(first, second):
        first = guard_same_size(first, 0, first=first, second=second)
        return first + second

    with pytest.raises(tf.errors.InvalidArgumentError, match="equally many"):
        compiled(joined, np.ones(2, "float32"), np.ones(3, "float32"))


@pytest.mark.parametrize(
    ("holds", "shape", "expected"),
    [
        (False, (2,), [NAN, NAN]),
        ([True, False], (2, 1), [[1], [NAN]]),
        ([True, False], (3,), [NAN] * 3),
        ([True, False], (), NAN),
        ([True, True], (3,), [1] * 3),
    ],
)
def test_examples_that_fail_are_marked(holds, shape, expected):
    expected = np.array(expected)

    def marked(holds):
        tensors = {
            "floats": ops.ones(shape),
            "integers": ops.ones(shape, "int32"),
            "booleans": ops.ones(shape, "bool"),
        }
        return guard(tensors, holds, "no")

    found = compiled(marked, np.array(holds), jit_compile=True)
    np.testing.assert_array_equal(found["floats"], expected)
    integers = np.where(np.isnan(expected), INVALID_POSITION, expected)
    np.testing.assert_array_equal(found["integers"], integers)
    assert np.all(found["booleans"])


def test_marks_are_passed_on():
    ids = np.array([[1, 2], [3, INVALID_POSITION]], "int32")
    found = compiled(
        lambda ids: mark_like(ops.ones((2, 3)), ids), ids, jit_compile=True
    )
    np.testing.assert_array_equal(found, [[1] * 3, [NAN] * 3])
    tensor = ops.ones((2, 3))
    assert mark_like(tensor, None) is tensor
    assert mark_like(tensor, ops.array([1, 2])) is tensor


@pytest.mark.parametrize(
    ("positions", "expected"),
    [
        (np.array([0, INVALID_POSITION], "int32"), [NAN, NAN]),
        (np.array([[0, 1], [2, INVALID_POSITION]], "int32"), [1, NAN]),
        (np.array([[0, 1], [2, NAN]], "float32"), [1, NAN]),
        (np.array([0, 1], "int32"), [1, 1]),
    ],
)
def test_invalid_positions_mark_examples(positions, expected):
    found = compiled(
        lambda positions: mark_by_positions(ops.ones((2, 3)), positions),
        positions,
        jit_compile=True,
    )
    np.testing.assert_array_equal(
        found, np.array(expected)[:, None] * np.ones(3)
    )


def test_known_numbers():
    assert find_numbers(3) == 3
    assert find_numbers(ops.ones(2)).tolist() == [1, 1]
    assert find_numbers(keras.KerasTensor((2,))) is None
    assert compiled(
        lambda x: ops.ones(()) * (find_numbers(x) is None), np.ones(2)
    )
