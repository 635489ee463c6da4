"""Base of the tasks that combine two binary numbers."""

import dataclasses

import numpy as np
import tensorflow as tf

from datasets.tasks.base import draw_symbols
from datasets.tasks.binary_numbers import draw_numbers, count_significant_bits
from datasets.tasks.terminated_answer import TERMINATION, TerminatedAnswer

SEPARATOR = 2


@dataclasses.dataclass(frozen=True)
class BinaryOperation(TerminatedAnswer):
    """Two numbers of a token a bit, the lowest first, a 2 between them.

    The first number has from 1 to `length - 2` bits, each number of bits as
    likely as the others, and the second one the rest. A number is uniform over
    what its bits can write, except zero, and may end in zeros. The answer ends
    with its highest one.

    Lengths 1 and 2 leave no room for a second number: the input is one number,
    anything but all ones, and the second one is taken to be zero.

    A subclass implements `combine`.
    """

    def combine(self, first, second):
        """Maps two numbers, as bits `(B, m)`, to a third."""
        raise NotImplementedError

    def draw(self, seed, batch_size, length):
        """Draws where the separator stands, and both numbers."""
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
        # Ones and zeros exchanged, all ones are left out instead of zero.
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
        # Zero is written as one bit where there is room for it.
        count = tf.minimum(
            tf.maximum(count_significant_bits(answer), 1), width - 1
        )
        return inputs, self.terminate(answer, count)

    def simple_rules(self, inputs):
        """A constant, or whether the input has so many ones."""
        ones = np.sum(inputs == 1, axis=1)
        thresholds = np.arange(inputs.shape[1] + 2)[:, np.newaxis]
        many = ones >= thresholds
        return np.concatenate(
            [many, ~many, np.full((1, len(ones)), TERMINATION)]
        )
