"""Stack manipulation: pops of an empty stack, and the distribution."""

import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf

from datasets.tasks.stack_manipulation import StackManipulation
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import CONTEXT_FREE, TerminatedRow, strings


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
        return strings(2)(1)
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


ROW = TerminatedRow(
    published=(5, 3, CONTEXT_FREE, 0.5),
    oracle=final_stack,
    outcomes=stacks_and_instructions,
    floor_rules=termination_after_many_pops,
    output_length=lambda length: length + 1,
    enumerated_lengths=range(1, 8),
)


@pytest.mark.parametrize("share_of_pops", [0.1, 0.5, 0.9])
def test_stacks_that_are_often_empty(share_of_pops):
    generator = np.random.default_rng(0)
    inputs = generator.choice([0, 1, 3, 4], (30, 300))
    inputs[generator.random(inputs.shape) < share_of_pops] = 2
    bits, count = StackManipulation()._compute_final_stack(
        tf.constant(inputs, tf.int32), *inputs.shape
    )
    for row, tokens in enumerate(inputs.tolist()):
        stack = []
        for token in tokens:
            stack = stack[1:] if token == 2 else [token % 3, *stack]
        assert count[row, 0] == len(stack)
        assert bits[row, : len(stack)].numpy().tolist() == stack


def test_long_inputs_have_any_height_and_any_instructions():
    inputs = StackManipulation().sample((1, 2), 20_000, 40)["inputs"].numpy()
    heights = (inputs < 2).sum(axis=1)
    assert (inputs[np.arange(40) < heights[:, np.newaxis]] < 2).all()
    counts = collections.Counter(heights.tolist())
    assert_counts_follow(counts, dict.fromkeys(range(1, 40), 1 / 39))
    bits = collections.Counter(inputs[inputs < 2].tolist())
    assert_counts_follow(bits, {0: 1 / 2, 1: 1 / 2})
    instructions = collections.Counter(inputs[inputs >= 2].tolist())
    assert_counts_follow(instructions, dict.fromkeys((2, 3, 4), 1 / 3))


def test_floor_falls_towards_a_half():
    floors = [StackManipulation().floor_accuracy(n) for n in (40, 100, 500)]
    assert floors == sorted(floors, reverse=True)
    assert 0.5 < floors[-1] < 0.53
