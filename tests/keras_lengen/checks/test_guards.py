"""Conditions that are known now, or only when a compiled program runs."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_lengen.checks.guards import (
    INVALID_POSITION,
    guard,
    mark_by_positions,
    mark_like,
)
from keras_lengen.checks.inputs import guard_same_size
from tests.keras_lengen.bad_inputs import (
    HOWS,
    NAN,
    SILENT,
    compiled,
    find_fault,
)


def run(function, array, how):
    return compiled(function, {"array": array}, how)(array=array)


def test_what_is_known_raises_at_once():
    tensor = ops.ones(2)
    for holds in (True, np.array([True, True]), ops.ones(2) > 0):
        assert guard(tensor, holds, "no") is tensor
    for holds in (False, np.array([True, False]), ops.array([True, False])):
        with pytest.raises(ValueError, match=r"^got 3 for \[1 2\]\.$"):
            guard(tensor, holds, "got ", 3, " for ", lambda: [1, 2], ".")


def test_what_is_not_known_or_not_needed_is_left_out():
    def fail():
        raise AssertionError

    guard((), True, fail)
    symbol = keras.KerasTensor((2,), dtype="bool")
    assert guard(symbol, symbol, fail) is symbol


@pytest.mark.parametrize("how", HOWS[1:])
def test_what_only_a_run_knows(how):
    def positive(array):
        return guard(array, array > 0, "numbers: ", array)

    right, wrong = np.ones(2, "float32"), np.array([-1, -2], "float32")
    program = compiled(positive, {"array": right}, how)
    assert np.all(np.asarray(program(array=right)) == 1)
    fault = find_fault(lambda: program(array=wrong), r"numbers: .*-1 -2", how)
    assert fault is None


@pytest.mark.skipif("graph" not in HOWS, reason="needs assertions")
def test_an_assertion_comes_before_what_would_fail_in_its_place():
    def joined(first, second):
        first = guard_same_size(first, 0, first=first, second=second)
        return first + second

    arrays = {"first": np.ones(2, "int32"), "second": np.ones(3, "int32")}
    program = compiled(joined, arrays, "graph")
    message = r"first and second must have the same batch size; got \W+2\W+and"
    assert find_fault(lambda: program(**arrays), message, "graph") is None


@pytest.mark.parametrize("how", SILENT)
@pytest.mark.parametrize(
    ("holds", "shape", "expected"),
    [
        ([True, False], (2, 1), [[1], [NAN]]),
        # One axis, or none: the examples share it.
        ([True, False], (3,), [NAN] * 3),
        ([True, False], (), NAN),
        ([True, True], (3,), [1] * 3),
        ([[1, 0], [1, 1]], (2, 2, 1), [[[1], [NAN]], [[1], [1]]]),
    ],
)
def test_examples_that_fail_are_marked(holds, shape, expected, how):
    expected = np.array(expected)

    def marked(array):
        tensors = {
            "floats": ops.ones(shape),
            "integers": ops.ones(shape, "int32"),
            "booleans": ops.ones(shape, "bool"),
            "nothing": None,
        }
        return guard(tensors, array, "no")

    found = run(marked, np.array(holds, bool), how)
    np.testing.assert_array_equal(found["floats"], expected)
    integers = np.where(np.isnan(expected), INVALID_POSITION, expected)
    np.testing.assert_array_equal(found["integers"], integers)
    assert np.all(found["booleans"])
    assert found["nothing"] is None


LAST = np.array([[0, 1], [2, INVALID_POSITION]], "int32")
INFINITE = np.array([[0, 1], [2, np.inf]], "float32")


def mark_by_pair(tensors, positions):
    return mark_by_positions(tensors, (positions * 0, positions))


@pytest.mark.parametrize("how", SILENT)
@pytest.mark.parametrize(
    ("mark", "source", "expected"),
    [
        (mark_like, LAST, [1, NAN]),
        (mark_like, np.array([[0, 1], [2, NAN]], "float32"), [1, NAN]),
        # Lengths are those of examples, positions those of all examples.
        (mark_like, LAST[1], [1, NAN]),
        (mark_by_positions, LAST[1], [NAN, NAN]),
        (mark_by_positions, LAST[0], [1, 1]),
        (mark_by_positions, LAST, [1, NAN]),
        (mark_by_pair, INFINITE, [1, NAN]),
    ],
)
def test_marks_are_passed_on(mark, source, expected, how):
    found = run(lambda array: mark(ops.ones((2, 3)), array), source, how)
    np.testing.assert_array_equal(found, np.transpose([expected] * 3))


def test_known_numbers_mark_nothing():
    tensor = ops.ones((2, 3))
    for source in (None, ops.array([1, INVALID_POSITION])):
        assert mark_like(tensor, source) is tensor
    assert mark_by_positions(tensor, ops.array([1, 2])) is tensor
