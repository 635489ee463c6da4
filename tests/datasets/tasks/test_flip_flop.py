"""Flip-flop: its distribution, its lengths, and other shares of noise."""

import collections
import itertools

import numpy as np
import pytest

from datasets.tasks.flip_flop import FlipFlop
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import REGULAR, Row


def last_written(tokens):
    for instruction, bit in reversed(list(itertools.pairwise(tokens))):
        if instruction == 2:
            return [bit]
    raise AssertionError("nothing was written")


def flip_flop_strings(length):
    outcomes = {}
    for count in [max(length // 2, 2) - 1]:
        for instructions in itertools.product([2, 3, 4], repeat=count - 1):
            for bits in itertools.product([0, 1], repeat=count):
                pairs = list(zip((2, *instructions), bits, strict=True))
                memory, probability = bits[0], 1 / 2
                for instruction, bit in pairs[1:]:
                    if instruction == 2:
                        memory, probability = bit, probability * 0.1 / 2
                    elif instruction == 3:
                        probability *= 0.8 / 2
                    else:
                        probability *= 0.1 * (bit == memory)
                if probability:
                    outcomes[(*itertools.chain(*pairs), 4)] = probability
    return outcomes


def more_frequent_bit(inputs):
    ones, zeros = ((inputs == bit).sum(axis=1, keepdims=True) for bit in (1, 0))
    return [ones >= zeros]


ROW = Row(
    published=(5, 2, REGULAR, 0.5),
    oracle=last_written,
    outcomes=flip_flop_strings,
    floor_rules=more_frequent_bit,
    input_length=lambda length: max(length // 2, 2) * 2 - 1,
    enumerated_lengths=range(1, 9),
    floor_examples=4096,
)


@pytest.mark.parametrize("ignored", [0.98, 0.8, 0.1])
def test_shares_of_instructions(ignored):
    batch = FlipFlop(ignored=ignored).sample((1, 2), 2000, 512)
    inputs = batch["inputs"].numpy()
    assert inputs.shape == (2000, 511)
    assert (inputs[:, 0] == 2).all() and (inputs[:, -1] == 4).all()
    counts = collections.Counter(inputs[:, 2:-1:2].ravel().tolist())
    other = (1 - ignored) / 2
    assert_counts_follow(counts, {2: other, 3: ignored, 4: other})


def test_every_read_gives_what_was_written_last():
    inputs = FlipFlop().sample((1, 2), 50, 200)["inputs"].numpy()
    reads = 0
    for row in inputs.tolist():
        for place in range(2, len(row) - 1, 2):
            if row[place] == 4:
                assert [row[place + 1]] == last_written(row[:place])
                reads += 1
    assert reads > 300


def test_floor_falls_towards_a_half_with_noise():
    floors = [FlipFlop(ignored=0.98).floor_accuracy(n) for n in (4, 32, 1024)]
    assert floors[0] == 1
    assert floors == sorted(floors, reverse=True)
    assert np.abs(floors[-1] - 0.5) < 0.08
