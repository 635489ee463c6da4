"""Solving equations: which digit was hidden?

An example of length 11, which reads ((x - 3) + 1) = 0:

    inputs   7 7 9 6 3 8 5 1 8 10 0
    targets  2
"""

import dataclasses

import tensorflow as tf

from datasets.tasks.base import Task, draw_symbols, larger
from datasets.tasks.bracketed_expressions import OPEN, draw_expressions

UNKNOWN, EQUALS = 9, 10


@dataclasses.dataclass(frozen=True)
class SolveEquation(Task):
    """The digit modulo 5 that the unknown of an equation stands for.

    The input is an expression of `+` and `-` in brackets, followed by `=` and
    the value of the expression. Tokens are the digits 0 to 4, then `+` 5, `-`
    6, `(` 7, `)` 8, the unknown 9 and `=` 10. The module
    `bracketed_expressions` describes the expressions.

    The unknown replaces one digit: the first digit from a uniformly drawn
    token on, continuing at the start of the expression if no digit follows.
    Digits that follow many other symbols are therefore hidden more often.
    There is exactly one solution, and each digit is equally likely.

    Lengths 1 and 2 leave no room for an equation: all inputs and the answer
    are 0.

    Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
    """

    input_vocabulary_size: int = 11
    output_vocabulary_size: int = 5
    level: str = "deterministic_context_free"
    random_accuracy: float = 0.2

    def draw(self, seed, batch_size, length):
        """Draws expressions with two operators, and the digit to hide."""
        expression_seed, place_seed = tf.unstack(
            tf.random.split(seed, 2, alg="philox")
        )
        size = larger(length - 2, 1)
        tokens, value = draw_expressions(expression_seed, batch_size, size, 2)
        start = draw_symbols(place_seed, batch_size, 1, size)
        place = tf.range(size)
        distance = tf.where(tokens < 5, (place - start) % size, size)
        hidden = tf.argmin(distance, axis=1, output_type=tf.int32)
        hidden = hidden[:, tf.newaxis]
        answer = tf.gather(tokens, hidden, batch_dims=1)
        # There is no `*`, so the ids of brackets are lower by one.
        tokens = tf.where(tokens < OPEN, tokens, tokens - 1)
        tokens = tf.where(place == hidden, UNKNOWN, tokens)
        equals = tf.fill(tf.shape(value), EQUALS)
        inputs = tf.concat([tokens, equals, value], axis=1)[:, :length]
        no_room = tf.less(length, 3)
        return tf.where(no_room, 0, inputs), tf.where(no_room, 0, answer)

    def floor_accuracy(self, length):
        """Accuracy of any constant: the hidden digit is uniform."""
        return 1.0 if length < 3 else 0.2

    def position_only_accuracy(self, length):
        """The same as `floor_accuracy`."""
        return self.floor_accuracy(length)
