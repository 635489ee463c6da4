"""Modular arithmetic: the value modulo 5 of a sum of products.

An example of length 7, which reads 4 - 3 * 2 + 1 and is -1:

    inputs   4 6 3 7 2 5 1
    targets  4
"""

import dataclasses

import numpy as np
import tensorflow as tf

from datasets.tasks.base import Task, draw_symbols

PLUS, MINUS, TIMES = 5, 6, 7

# Base 2 logarithms modulo 5 of 1, 2, 3, 4: with them a product becomes a sum
# that no length overflows. Zero has none; its entry is never used.
LOGARITHMS = (0, 0, 1, 3, 2)
POWERS = (1, 2, 4, 3)


@dataclasses.dataclass(frozen=True)
class ModularArithmetic(Task):
    """Value modulo 5 of digits joined by `+`, `-` and `*`, without brackets.

    Tokens are the digits 0 to 4, then `+` 5, `-` 6, `*` 7; 8 is a blank that
    the vocabulary has and no input contains. Digits and operators are uniform
    and independent. `*` binds more tightly than `+` and `-`, and the answer is
    a number from 0 to 4.

    Digits and operators alternate, so an input has an odd number of tokens: an
    even length gives the problems of the length below it, and lengths 1 and 2
    give a single digit.

    Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
    """

    input_vocabulary_size: int = 9
    output_vocabulary_size: int = 5
    level: str = "regular"
    random_accuracy: float = 0.2

    def input_length(self, length):
        """The length itself if it is odd, one less otherwise."""
        return length - 1 + length % 2

    def draw(self, seed, batch_size, length):
        """Draws uniform digits and uniform operators, and alternates them."""
        number_of_digits = (length + 1) // 2
        digit_seed, operator_seed = tf.unstack(
            tf.random.split(seed, 2, alg="philox")
        )
        digits = draw_symbols(digit_seed, batch_size, number_of_digits, 5)
        operators = PLUS + draw_symbols(
            operator_seed, batch_size, number_of_digits - 1, 3
        )
        operators = tf.pad(operators, [[0, 0], [1, 0]], constant_values=PLUS)
        pairs = tf.stack([operators, digits], axis=2)
        # The size is spelled out, not -1, to stay static where it can.
        tokens = tf.reshape(pairs, (batch_size, 2 * number_of_digits))[:, 1:]
        return tokens, evaluate(digits, operators)

    def floor_accuracy(self, length):
        """The likeliest value at this length."""
        # The state is (sum of the finished terms, term in progress), modulo 5.
        step = np.zeros((5, 5, 5, 5))
        for total in range(5):
            for term in range(5):
                for digit in range(5):
                    step[total, term, total, term * digit % 5] += 1 / 15
                    # After `-` the new term is -digit: as uniform as digit.
                    step[total, term, (total + term) % 5, digit] += 2 / 15
        number_of_operators = self.input_length(length) // 2
        steps = np.linalg.matrix_power(
            step.reshape(25, 25), number_of_operators
        )
        last = steps.reshape(step.shape)[0].mean(axis=0)
        values = np.add.outer(np.arange(5), np.arange(5)) % 5
        return float(np.bincount(values.ravel(), last.ravel()).max())

    def position_only_accuracy(self, length):
        """The same constant as for the floor."""
        return self.floor_accuracy(length)


def evaluate(digits, operators):
    """Evaluates expressions modulo 5, all terms of a batch at once.

    Args:
        digits: int32 `(B, N)`, values from 0 to 4.
        operators: int32 `(B, N)`, the operator before each digit, the first
            one not `TIMES`.

    Returns:
        int32 `(B, 1)`, values from 0 to 4.
    """
    batch_size, number_of_digits = tf.unstack(tf.shape(digits))
    # A term is a run of digits joined by `*`.
    term = tf.cumsum(tf.cast(operators != TIMES, tf.int32), axis=1) - 1
    row_start = tf.range(batch_size)[:, tf.newaxis] * number_of_digits

    def sum_over_terms(addends):
        sums = tf.math.unsorted_segment_sum(
            addends, row_start + term, batch_size * number_of_digits
        )
        return tf.reshape(sums, tf.shape(digits))

    # -1 is 2 to the power of 2 modulo 5, so a minus adds 2 to the logarithm.
    sign = 2 * tf.cast(operators == MINUS, tf.int32)
    logarithm = sum_over_terms(tf.gather(LOGARITHMS, digits) + sign)
    zeros = sum_over_terms(tf.cast(digits == 0, tf.int32))
    value = tf.where(zeros > 0, 0, tf.gather(POWERS, logarithm % 4))
    # Slots beyond the last term are empty products, that is, ones.
    exists = tf.range(number_of_digits) <= term[:, -1:]
    total = tf.reduce_sum(tf.where(exists, value, 0), axis=1, keepdims=True)
    return total % 5
