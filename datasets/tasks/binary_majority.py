"""Binary majority: which bit is more frequent?

An example of length 6:

    inputs   0 1 1 0 1 1
    targets  1
"""

import dataclasses

import tensorflow as tf

from datasets.tasks.base import Task, draw_distinct, draw_symbols


@dataclasses.dataclass(frozen=True)
class BinaryMajority(Task):
    """The more frequent bit of a string.

    The number of zeros is uniform among those that make no tie, and their
    places are uniform.

    The order of the bits does not matter, so a model can solve the task
    without positions. The best simple rule is therefore a constant: a better
    rule compares the counts of bits, which is the solution.

    The published lengths are `--train_length=1-50 --test_lengths=1-150`, the
    budgets up to `--steps=30000 --batch_size=64 --learning_rate=1e-3`, and the
    score is `exact_match`. The published models are causal and have a table of
    positions with random offsets, or no positions.

    Theory: a program of C-RASP solves it, so causal Transformers are predicted
    to generalise, with or without positions. Published with the table: exact
    match 1.00 at lengths 51 to 100 and 1.00 at 101 to 150.

    `majority`, `unique_copy`, `repeat_copy`, `unique_sort`, `parity_check` and
    `binary_addition` are the other tasks of this suite.

    Reference: Huang et al., 2025, section 5.
    https://arxiv.org/abs/2410.02140
    """

    input_vocabulary_size: int = 2
    output_vocabulary_size: int = 2
    level: str = "deterministic_context_free"
    random_accuracy: float = 0.5

    def draw(self, seed, batch_size, length):
        """Draws the number of zeros and their places."""
        count_seed, place_seed = tf.unstack(
            tf.random.split(seed, 2, alg="philox")
        )
        # length + 1 numbers, or length if one of them makes a tie.
        zeros = draw_symbols(count_seed, batch_size, 1, length + length % 2)
        makes_tie = tf.cast(2 * zeros >= length, tf.int32)
        zeros += makes_tie * (1 - length % 2)
        order = draw_distinct(place_seed, batch_size, length, length)
        inputs = tf.cast(order >= zeros, tf.int32)
        return inputs, tf.cast(2 * zeros < length, tf.int32)

    def floor_accuracy(self, length):
        """Accuracy of any constant: both answers are equally likely."""
        del length
        return 0.5

    def position_only_accuracy(self, length):
        """The same as `floor_accuracy`."""
        return self.floor_accuracy(length)
