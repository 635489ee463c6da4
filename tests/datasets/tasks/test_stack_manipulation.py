"""Stack manipulation: pops of an empty stack, and the distribution."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from datasets.tasks.stack_manipulation import StackManipulation
from tests.datasets.tasks.chi_square import assert_counts_follow


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
