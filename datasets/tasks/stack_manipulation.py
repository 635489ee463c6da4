"""Stack manipulation: the contents of a stack after some instructions.

An example of length 7: a stack of 0 1 1 0, top last; a 1 is pushed (4), then
two elements are popped (2):

    inputs   0 1 1 0 4 2 2
    targets  1 1 0 2 0 0 0 0
"""

import dataclasses

import numpy as np
import tensorflow as tf

from datasets.tasks.base import draw_symbols
from datasets.tasks.terminated_answer import TERMINATION, TerminatedAnswer

POP, PUSH = 2, 3


@dataclasses.dataclass(frozen=True)
class StackManipulation(TerminatedAnswer):
    """The final stack from the top down, a termination token, and zeros.

    The input is the bits of a stack from the bottom up, followed by
    instructions: 2 pops, 3 pushes a 0, and 4 pushes a 1. Popping an empty
    stack has no effect. The stack has from 1 to `length - 1` bits; each height
    is equally likely. Bits and instructions are uniform. At length 1 there is
    a stack of one bit and no instruction.

    Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
    """

    input_vocabulary_size: int = 5
    output_vocabulary_size: int = 3
    level: str = "deterministic_context_free"
    random_accuracy: float = 0.5

    def output_length(self, length):
        """Input length plus one, for the termination token."""
        return length + 1

    def draw(self, seed, batch_size, length):
        """Draws a stack and instructions, and executes them."""
        height_seed, bit_seed, instruction_seed = tf.unstack(
            tf.random.split(seed, 3, alg="philox")
        )
        height = 1 + draw_symbols(
            height_seed, batch_size, 1, tf.maximum(length - 1, 1)
        )
        bits = draw_symbols(bit_seed, batch_size, length, 2)
        instructions = POP + draw_symbols(
            instruction_seed, batch_size, length, 3
        )
        inputs = tf.where(tf.range(length) < height, bits, instructions)
        stack, count = self._compute_final_stack(inputs, batch_size, length)
        return inputs, self.terminate(stack, count)

    def _compute_final_stack(self, inputs, batch_size, length):
        """Computes the final stack.

        Reading the input from the end, each pop removes the next push that no
        other pop has removed. Therefore a push remains exactly if the surplus
        of pushes over pops, counted from the end up to and including this
        push, reaches a new positive maximum there.

        Args:
            inputs: int32 `(B, n)`.
            batch_size: int or scalar int tensor. Number of problems B.
            length: int or scalar int tensor. Number of tokens n.

        Returns:
            int32 `(B, n + 1)`, the stack with its top first, and int32
            `(B, 1)`, its height.
        """
        backward = tf.reverse(inputs, [1])
        pushed = tf.where(backward == POP, -1, 1)
        surplus = tf.cumsum(pushed, axis=1)
        width = length + 1
        row = tf.range(batch_size)[:, tf.newaxis] * width
        # Negative segment ids are ignored.
        segment = tf.where(surplus > 0, row + surplus - 1, -1)
        time = tf.broadcast_to(tf.range(length), tf.shape(inputs))
        first = tf.math.unsorted_segment_min(time, segment, batch_size * width)
        first = tf.reshape(first, (batch_size, width))
        stays = first < length
        tokens = tf.gather(
            backward, tf.where(stays, first, 0), axis=1, batch_dims=1
        )
        count = tf.reduce_sum(tf.cast(stays, tf.int32), axis=1, keepdims=True)
        return tf.where(tokens < POP, tokens, tokens - PUSH), count

    def simple_rules(self, inputs):
        """The more frequent bit, or the termination token if there are pops.

        Each rule has a threshold for the number of pops.
        """
        ones = np.sum((inputs == 1) | (inputs == PUSH + 1), axis=1)
        pops = np.sum(inputs == POP, axis=1)
        bit = 2 * ones >= inputs.shape[1] - pops
        thresholds = np.arange(inputs.shape[1] + 2)[:, np.newaxis]
        return np.where(pops >= thresholds, TERMINATION, bit)
