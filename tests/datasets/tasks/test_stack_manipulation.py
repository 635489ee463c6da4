"""Stack manipulation: pops of an empty stack, and the distribution."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from datasets.tasks.stack_manipulation import StackManipulation
from tests.datasets.tasks import row


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


def find_heights(inputs, targets):
    heights = (inputs < 2).sum(axis=1)
    below = np.arange(inputs.shape[1]) < heights[:, np.newaxis]
    assert ((inputs < 2) == below).all()
    return heights


ROW = row.TerminatedRow(
    published=(5, 3, row.CONTEXT_FREE, 0.5),
    oracle=final_stack,
    outcomes=stacks_and_instructions,
    floor_rules=termination_after_many_pops,
    output_length=lambda length: length + 1,
    enumerated_lengths=range(1, 8),
    laws=(
        row.Law(40, 20_000, find_heights, row.uniform(range(1, 40))),
        row.Law(
            40,
            20_000,
            lambda inputs, targets: inputs[inputs < 2],
            row.uniform((0, 1)),
        ),
        row.Law(
            40,
            20_000,
            lambda inputs, targets: inputs[inputs >= 2],
            row.uniform((2, 3, 4)),
        ),
    ),
)


@pytest.mark.parametrize("share_of_pops", [0.1, 0.5, 0.9])
def test_stacks_that_are_often_empty(share_of_pops):
    generator = np.random.default_rng(0)
    inputs = generator.choice([0, 1, 3, 4], (30, 300))
    inputs[generator.random(inputs.shape) < share_of_pops] = 2
    bits, count = StackManipulation()._compute_final_stack(
        tf.constant(inputs, tf.int32), *inputs.shape
    )
    for number, tokens in enumerate(inputs.tolist()):
        expected = final_stack(tokens)
        height = expected.index(2)
        assert count[number, 0] == height
        assert bits[number, :height].numpy().tolist() == expected[:height]


def test_floor_falls_towards_a_half():
    floors = [StackManipulation().floor_accuracy(n) for n in (40, 100, 500)]
    assert floors == sorted(floors, reverse=True)
    assert 0.5 < floors[-1] < 0.53
