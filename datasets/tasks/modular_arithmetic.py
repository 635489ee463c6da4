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

# LOGARITHMS[d] is the base 2 logarithm modulo 5 of digit d, and POWERS its
# inverse. They turn a product into a sum, which does not overflow at any
# length. Zero has no logarithm; its entry has no effect.
LOGARITHMS = (0, 0, 1, 3, 2)
POWERS = (1, 2, 4, 3)


@dataclasses.dataclass(frozen=True)
class ModularArithmetic(Task):
    """Value modulo 5 of digits joined by `+`, `-` and `*`, without brackets.

    Tokens are the digits 0 to 4, then `+` 5, `-` 6, `*` 7; 8 is a blank, which
    is in the vocabulary but in no input. Digits and operators are uniform and
    independent. `*` has precedence over `+` and `-`. The answer is a number
    from 0 to 4.

    Digits and operators alternate, so an input has an odd number of tokens. An
    even length gives the problems of the length below it; lengths 1 and 2 give
    a single digit.

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
        """Draws uniform digits and operators and interleaves them."""
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
        # An explicit size, not -1, keeps the shape static if possible.
        tokens = tf.reshape(pairs, (batch_size, 2 * number_of_digits))[:, 1:]
        return tokens, evaluate(digits, operators)

    def floor_accuracy(self, length):
        """Probability of the most likely value at this length."""
        # A Markov chain over digits; the state is the sum of the finished terms
        # and the current term, both modulo 5.
        step = np.zeros((5, 5, 5, 5))
        for total in range(5):
            for term in range(5):
                for digit in range(5):
                    step[total, term, total, term * digit % 5] += 1 / 15
                    # After `-` the new term is -digit, which is as uniform.
                    step[total, term, (total + term) % 5, digit] += 2 / 15
        number_of_operators = self.input_length(length) // 2
        steps = np.linalg.matrix_power(
            step.reshape(25, 25), number_of_operators
        )
        last = steps.reshape(step.shape)[0].mean(axis=0)
        values = np.add.outer(np.arange(5), np.arange(5)) % 5
        return float(np.bincount(values.ravel(), last.ravel()).max())

    def position_only_accuracy(self, length):
        """The same as `floor_accuracy`."""
        return self.floor_accuracy(length)


def evaluate(digits, operators):
    """Evaluates expressions modulo 5, all terms of a batch at once.

    Args:
        digits: int32 `(B, N)`, from 0 to 4.
        operators: int32 `(B, N)`. The operator before each digit; the first
            one must not be `TIMES`.

    Returns:
        int32 `(B, 1)`, from 0 to 4.
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

    # -1 equals 2**2 modulo 5, so a minus adds 2 to the logarithm.
    sign = 2 * tf.cast(operators == MINUS, tf.int32)
    logarithm = sum_over_terms(tf.gather(LOGARITHMS, digits) + sign)
    zeros = sum_over_terms(tf.cast(digits == 0, tf.int32))
    value = tf.where(zeros > 0, 0, tf.gather(POWERS, logarithm % 4))
    # Entries after the last term are empty products, which are 1.
    exists = tf.range(number_of_digits) <= term[:, -1:]
    total = tf.reduce_sum(tf.where(exists, value, 0), axis=1, keepdims=True)
    return total % 5
