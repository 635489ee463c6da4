"""Missing duplicate string: the gap, the filler and the shortest lengths."""

import collections
import itertools

import numpy as np
import pytest

from datasets.tasks.missing_duplicate_string import MissingDuplicateString
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import (
    CONTEXT_SENSITIVE,
    Row,
    equally_likely,
    threshold_on_ones,
)


def hidden_bit(tokens):
    if tokens == [1]:
        return [1]
    string = [token for token in tokens if token != 3]
    place = string.index(2)
    return [string[place - len(string) // 2]]


def doubled_strings_with_a_gap(length):
    if length == 1:
        return {(1,): 1.0}
    inputs = []
    for bits in itertools.product(range(2), repeat=length // 2):
        for place in range(2 * len(bits)):
            doubled = list(bits + bits)
            doubled[place] = 2
            inputs.append((*doubled, *[3] * (length % 2)))
    return equally_likely(inputs)


ROW = Row(
    published=(4, 2, CONTEXT_SENSITIVE, 0.5),
    oracle=hidden_bit,
    outcomes=doubled_strings_with_a_gap,
    floor_rules=threshold_on_ones,
)


def count(length, batch_size=20_000):
    batch = MissingDuplicateString().sample((1, 2), batch_size, length)
    pairs = zip(
        batch["inputs"].numpy().tolist(),
        batch["targets"].numpy().tolist(),
        strict=True,
    )
    return collections.Counter((*inputs, *targets) for inputs, targets in pairs)


def test_length_1_is_always_the_same():
    assert count(1) == {(1, 1): 20_000}


@pytest.mark.parametrize(("length", "filler"), [(2, ()), (3, (3,))])
def test_one_bit_and_its_copy(length, filler):
    problems = [(2, 0), (2, 1), (0, 2), (1, 2)]
    expected = {
        (*problem, *filler, min(problem)): 1 / 4 for problem in problems
    }
    assert_counts_follow(count(length), expected)


@pytest.mark.parametrize("length", [40, 41, 500])
def test_gap_is_anywhere_and_filler_at_the_end(length):
    batch = MissingDuplicateString().sample((1, 2), 20_000, length)
    inputs = batch["inputs"].numpy()
    if length % 2:
        assert (inputs[:, -1] == 3).all()
        inputs = inputs[:, :-1]
    assert inputs.max() == 2
    assert ((inputs == 2).sum(axis=1) == 1).all()
    places = collections.Counter((inputs == 2).argmax(axis=1).tolist())
    size = inputs.shape[1]
    assert_counts_follow(places, dict.fromkeys(range(size), 1 / size))
    # The shortcut that needs no order: a doubled string has even parity.
    visible_ones = (inputs == 1).sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(batch["targets"], visible_ones % 2)


def test_eight_tokens_are_uniform_over_strings_and_gaps():
    expected = {}
    for code in range(16):
        bits = [code >> place & 1 for place in range(4)]
        for gap in range(8):
            problem = bits + bits
            problem[gap] = 2
            expected[(*problem, bits[gap % 4])] = 1 / 128
    assert_counts_follow(count(8), expected)


def test_floor_by_hand():
    task = MissingDuplicateString()
    assert task.floor_accuracy(1) == task.position_only_accuracy(1) == 1
    # One bit: the visible one is the hidden one. Two bits: 0 or 2 ones are
    # visible over a 0, and 1 or 3 over a 1; any threshold errs on one of four.
    assert task.floor_accuracy(2) == task.floor_accuracy(3) == 1
    assert task.floor_accuracy(4) == pytest.approx(3 / 4)
    assert task.position_only_accuracy(2) == 0.5
