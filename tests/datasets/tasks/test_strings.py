"""Tasks on strings of symbols: their rows, and floors over many lengths."""

import collections
import itertools
import math

import numpy as np
import pytest

from datasets.tasks import TASKS
from datasets.tasks.majority import Majority
from datasets.tasks.unique_copy import UniqueCopy
from datasets.tasks.unique_sort import UniqueSort
from tests.datasets.tasks import row


def rearrange(oracle, level=row.CONTEXT_SENSITIVE, times=1):
    """The row of a task that repeats its input, or changes its order."""
    return row.Row(
        published=(2, 2, level, 0.5),
        oracle=oracle,
        floor_rules=row.most_frequent(range(2)),
        output_length=lambda length: times * length,
    )


def unequal_pairs(bits):
    return [sum(a != b for a, b in itertools.pairwise(bits)) % 2]


def unequal_ends_if_balanced(inputs):
    length = inputs.shape[1]
    imbalance = np.abs(2 * inputs.sum(axis=1, keepdims=True) - length)
    return [imbalance <= limit for limit in range(-1, length + 1)]


def walk(steps):
    place = 0
    for step in steps:
        if step == 2:
            place = 0 if place == 4 else place + 1
        if step == 0:
            place = 4 if place == 0 else place - 1
    return [place]


def hidden_bit(tokens):
    if tokens == [1]:
        return [1]
    string = [token for token in tokens if token != 3]
    place = string.index(2)
    return [string[place - len(string) // 2]]


def is_doubled(tokens):
    half = len(tokens) // 2
    copies = zip(tokens[:half], tokens[half : 2 * half], strict=True)
    pairs = [{*pair} for pair in copies]
    hidden = [pair for pair in pairs if pair in ({0, 2}, {1, 2})]
    others = [pair for pair in pairs if pair in ({0}, {1})]
    return tokens == (1,) or (
        (len(hidden), len(others)) == (1, half - 1)
        and tokens[2 * half :] in ((), (3,))
    )


def final_stack(tokens):
    stack = []
    for token in tokens:
        if token != 2:
            stack.append({0: 0, 1: 1, 3: 0, 4: 1}[token])
        elif stack:
            stack.pop()
    return [*reversed(stack), 2, *[0] * (len(tokens) - len(stack))]


def stacks_and_instructions(length):
    if length == 1:
        return row.strings(2)(1)
    outcomes = {}
    for height in range(1, length):
        parts = [[0, 1]] * height + [[2, 3, 4]] * (length - height)
        inputs = list(itertools.product(*parts))
        outcomes |= dict.fromkeys(inputs, 1 / (length - 1) / len(inputs))
    return outcomes


def termination_after_many_pops(inputs):
    zeros, ones = (
        ((inputs == bit) | (inputs == 3 + bit)).sum(axis=1, keepdims=True)
        for bit in (0, 1)
    )
    pops = inputs.shape[1] - zeros - ones
    return [
        np.where(pops >= limit, 2, ones > zeros)
        for limit in range(inputs.shape[1] + 2)
    ]


def two_before(tokens):
    return [0, 0, *tokens][: len(tokens)]


def zero_and_symbols(length):
    return {
        (0, *(1 + symbol for symbol in symbols)): probability
        for symbols, probability in row.strings(15)(length - 1).items()
    }


def zero_or_most_frequent(inputs):
    return [np.zeros((1, 1)), 1 + row.most_frequent(range(1, 16))(inputs)[0]]


def bits_without_ties(length):
    """The number of zeros is uniform, but makes no tie."""
    counts = [zeros for zeros in range(length + 1) if 2 * zeros != length]
    return {
        bits: 1 / len(counts) / math.comb(length, bits.count(0))
        for bits in itertools.product(range(2), repeat=length)
        if bits.count(0) in counts
    }


def most_frequent_letter(letters):
    assert has_a_winner(letters)
    return [collections.Counter(letters).most_common()[0][0]]


def has_a_winner(letters):
    ranked = collections.Counter(letters).most_common()
    return len(ranked) == 1 or ranked[0][1] > ranked[1][1]


def make_majority(letters):
    return row.Row(
        published=(letters, letters, row.CONTEXT_SENSITIVE, 1 / 26),
        oracle=most_frequent_letter,
        outcomes=row.valid_strings(letters, has_a_winner),
    )


def orders_of(symbols):
    """Strings of distinct symbols, and several ones beyond the vocabulary."""

    def outcomes(length):
        whole, rest = divmod(length, symbols)
        orders = list(itertools.permutations(range(symbols)))
        blocks = [orders] * whole
        blocks.append(list(itertools.permutations(range(symbols), rest)))
        return row.equally_likely(
            tuple(itertools.chain(*string))
            for string in itertools.product(*blocks)
        )

    return outcomes


def make_unique(symbols, oracle):
    return row.Row(
        published=(symbols, symbols, row.CONTEXT_SENSITIVE, 1 / 150),
        oracle=oracle,
        outcomes=orders_of(symbols),
        floor_rules=row.most_frequent(range(symbols)),
        output_length=lambda length: length,
    )


ROWS = {
    "repeat_copy": rearrange(list),
    "duplicate_string": rearrange(lambda bits: 2 * bits, times=2),
    "reverse_string": rearrange(lambda bits: bits[::-1], row.CONTEXT_FREE),
    # Indices count from zero.
    "odds_first": rearrange(lambda bits: bits[1::2] + bits[::2]),
    "parity_check": row.Row(
        published=(2, 2, row.REGULAR, 0.5),
        oracle=lambda bits: [bits.count(1) % 2],
    ),
    "even_pairs": row.Row(
        published=(2, 2, row.REGULAR, 0.5),
        oracle=unequal_pairs,
        floor_rules=unequal_ends_if_balanced,
    ),
    "cycle_navigation": row.Row(
        published=(3, 5, row.REGULAR, 0.2), oracle=walk
    ),
    "bucket_sort": row.Row(
        published=(5, 5, row.CONTEXT_SENSITIVE, 0.2),
        oracle=sorted,
        floor_rules=row.most_frequent(range(5)),
        output_length=lambda length: length,
    ),
    "missing_duplicate_string": row.Row(
        published=(4, 2, row.CONTEXT_SENSITIVE, 0.5),
        oracle=hidden_bit,
        outcomes=row.valid_strings(4, is_doubled),
        floor_rules=row.threshold_on_ones,
        enumerated_lengths=range(1, 9),
    ),
    "stack_manipulation": row.TerminatedRow(
        published=(5, 3, row.CONTEXT_FREE, 0.5),
        oracle=final_stack,
        outcomes=stacks_and_instructions,
        floor_rules=termination_after_many_pops,
        output_length=lambda length: length + 1,
        enumerated_lengths=range(1, 8),
    ),
    "two_back": row.Row(
        published=(16, 16, row.REGULAR, 1 / 16),
        oracle=two_before,
        outcomes=zero_and_symbols,
        floor_rules=zero_or_most_frequent,
        output_length=lambda length: length,
        enumerated_lengths=range(1, 4),
        floor_examples=4096,
    ),
    "binary_majority": row.Row(
        published=(2, 2, row.CONTEXT_FREE, 0.5),
        oracle=lambda bits: [int(bits.count(1) > bits.count(0))],
        outcomes=bits_without_ties,
        enumerated_lengths=range(1, 8),
    ),
    "majority": row.with_small(
        make_majority(26), make_majority(3), Majority, range(1, 7)
    ),
    "unique_copy": row.with_small(
        make_unique(150, list), make_unique(4, list), UniqueCopy, range(1, 7)
    ),
    "unique_sort": row.with_small(
        make_unique(150, sorted),
        make_unique(4, sorted),
        UniqueSort,
        range(1, 7),
    ),
}


def test_floor_is_the_published_score_without_positions():
    task = TASKS["reverse_string"]
    floors = [task.floor_accuracy(length) for length in range(41, 501)]
    assert np.mean(floors) == pytest.approx(0.528, abs=5e-4)


@pytest.mark.product
def test_floors_of_sorting_over_long_lengths():
    task, lengths = TASKS["bucket_sort"], range(41, 501)
    floor = np.mean([task.floor_accuracy(length) for length in lengths])
    # 23.7% is the published score of a model without positions.
    assert floor == pytest.approx(0.237, abs=1e-3)
    position_only = [task.position_only_accuracy(length) for length in lengths]
    assert np.mean(position_only) == pytest.approx(0.9, abs=5e-3)
    assert position_only == sorted(position_only)
