"""Majority: which of 26 letters is the most frequent?

An example of length 7:

    inputs   4 25 4 11 4 11 0
    targets  4
"""

import dataclasses

import tensorflow as tf

from datasets.tasks.base import Task, draw_symbols


@dataclasses.dataclass(frozen=True)
class Majority(Task):
    """The most frequent letter of a string.

    Letters are uniform; strings in which several letters are the most frequent
    are drawn again.

    The order of the letters does not matter, so a model can solve the task
    without positions. The best simple rule is therefore a constant: a better
    rule compares the counts of letters, which is the solution.

    Lengths, budgets and score are those of `binary_majority`.

    Theory: a program of C-RASP solves it, so causal Transformers are predicted
    to generalise, with or without positions. Published exact match at lengths
    51 to 100 and 101 to 150: 1.00 and 0.98, both with a table of positions and
    without positions.

    Reference: Huang et al., 2025, section 5.
    https://arxiv.org/abs/2410.02140
    """

    input_vocabulary_size: int = 26
    output_vocabulary_size: int = 26
    level: str = "context_sensitive"
    random_accuracy: float = 1 / 26

    def draw(self, seed, batch_size, length):
        """Draws strings until each has one most frequent letter."""
        letters = self.input_vocabulary_size

        def draw_strings(attempt):
            key = tf.random.fold_in(seed, attempt, alg="philox")
            return draw_symbols(key, batch_size, length, letters)

        def count_letters(strings):
            row = tf.range(batch_size)[:, tf.newaxis] * letters
            counts = tf.math.unsorted_segment_sum(
                tf.ones_like(strings), row + strings, batch_size * letters
            )
            return tf.math.top_k(tf.reshape(counts, (batch_size, letters)), 2)

        def find_ties(strings):
            highest = count_letters(strings).values
            return highest[:, :1] == highest[:, 1:]

        def draw_ties_again(attempt, strings):
            again = draw_strings(attempt)
            return attempt + 1, tf.where(find_ties(strings), again, strings)

        _, inputs = tf.while_loop(
            lambda _, strings: tf.reduce_any(find_ties(strings)),
            draw_ties_again,
            (tf.constant(1, tf.int64), draw_strings(tf.constant(0, tf.int64))),
        )
        return inputs, count_letters(inputs).indices[:, :1]

    def floor_accuracy(self, length):
        """Accuracy of any constant: all letters are equally likely."""
        del length
        return 1 / self.output_vocabulary_size

    def position_only_accuracy(self, length):
        """The same as `floor_accuracy`."""
        return self.floor_accuracy(length)
