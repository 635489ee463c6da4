"""Base of the tasks that combine two binary numbers."""

import dataclasses

import numpy as np
import tensorflow as tf

from datasets.tasks.base import draw_symbols
from datasets.tasks.binary_numbers import count_significant_bits, draw_numbers
from datasets.tasks.terminated_answer import TERMINATION, TerminatedAnswer

SEPARATOR = 2


@dataclasses.dataclass(frozen=True)
class BinaryOperation(TerminatedAnswer):
    """Base of the tasks that combine two binary numbers.

    The input is two numbers, lowest bit first, separated by a 2. The first
    number has from 1 to `length - 2` bits; each number of bits is equally
    likely. The second number has the remaining bits. Each number is uniform
    among the nonzero numbers that fit into its bits, so its highest bits may
    be zero. The answer has no leading zeros.

    Lengths 1 and 2 leave no room for a second number. The input is then a
    single number whose bits are not all ones, and the second number is zero.

    A subclass implements `combine` and `output_length`.
    """

    def combine(self, first, second):
        """Maps two numbers, int32 bits `(B, m)`, to a third."""
        raise NotImplementedError

    def draw(self, seed, batch_size, length):
        """Draws the place of the separator and both numbers."""
        place_seed, first_seed, second_seed = tf.unstack(
            tf.random.split(seed, 3, alg="philox")
        )
        alone = tf.less_equal(length, 2)
        width = self.output_length(length)
        place = 1 + draw_symbols(
            place_seed, batch_size, 1, tf.maximum(length - 2, 1)
        )
        first = draw_numbers(
            first_seed, batch_size, tf.where(alone, length, place), width
        )
        second = draw_numbers(
            second_seed, batch_size, tf.maximum(length - 1 - place, 1), width
        )
        # Swapping ones and zeros excludes all ones instead of zero.
        written = tf.range(width) < length
        first = tf.where(alone & written, 1 - first, first)
        second = tf.where(alone, 0, second)

        column = tf.range(length)
        after = tf.gather(
            second,
            tf.maximum(column - place - 1, 0),
            axis=1,
            batch_dims=1,
        )
        inputs = tf.where(column < place, first[:, :length], after)
        inputs = tf.where(column == place, SEPARATOR, inputs)
        inputs = tf.where(alone, first[:, :length], inputs)
        answer = self.combine(first, second)
        # Zero is written as one bit if there is room for it.
        count = tf.minimum(
            tf.maximum(count_significant_bits(answer), 1), width - 1
        )
        return inputs, self.terminate(answer, count)

    def simple_rules(self, inputs):
        """Constants, and whether the number of ones reaches a threshold."""
        ones = np.sum(inputs == 1, axis=1)
        thresholds = np.arange(inputs.shape[1] + 2)[:, np.newaxis]
        many = ones >= thresholds
        return np.concatenate(
            [many, ~many, np.full((1, len(ones)), TERMINATION)]
        )
