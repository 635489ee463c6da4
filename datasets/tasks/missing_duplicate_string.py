"""Missing duplicate string: which bit of a doubled string was hidden?

An example of length 7: the string 0 1 1 and its copy, with the fifth bit hidden
by a 2, and a 3 to fill the odd length:

    inputs   0 1 1 0 2 1 3
    targets  1
"""

import dataclasses

import tensorflow as tf

from datasets.floors import hidden_bit_by_threshold, one_uniform_bit
from datasets.tasks.base import Task, draw_symbols


@dataclasses.dataclass(frozen=True)
class MissingDuplicateString(Task):
    """The bit that a placeholder hides in a string and its copy.

    The string has uniform bits and half of the length, rounded down. Token 2
    replaces one bit of the string or its copy; each bit is equally likely to
    be replaced. Token 3 fills an odd length. Length 1 leaves no room for a
    copy: the input is the token 1 and the answer is 1.

    A string and its copy together have an even number of ones, so the answer
    is also the parity of the visible ones, and a model can solve the task
    without positions. The best simple rule compares the number of ones with a
    threshold.

    Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
    """

    input_vocabulary_size: int = 4
    output_vocabulary_size: int = 2
    level: str = "context_sensitive"
    random_accuracy: float = 0.5

    def draw(self, seed, batch_size, length):
        """Draws uniform bits and the place of the placeholder."""
        # At length 1, half is 1; the inputs are truncated and then replaced.
        half = length // 2 + 1 // length
        bit_seed, place_seed = tf.unstack(
            tf.random.split(seed, 2, alg="philox")
        )
        bits = draw_symbols(bit_seed, batch_size, half, 2)
        doubled = tf.concat([bits, bits], axis=1)
        place = draw_symbols(place_seed, batch_size, 1, 2 * half)
        hidden = tf.gather(doubled, place, axis=1, batch_dims=1)
        inputs = tf.where(tf.range(2 * half) == place, 2, doubled)
        inputs = tf.pad(inputs, [[0, 0], [0, 1]], constant_values=3)
        inputs = inputs[:, :length]
        alone = tf.equal(length, 1)
        return tf.where(alone, 1, inputs), tf.where(alone, 1, hidden)

    def floor_accuracy(self, length):
        """Accuracy of whether the visible ones reach the best threshold."""
        return hidden_bit_by_threshold(length)

    def position_only_accuracy(self, length):
        """Accuracy of a constant: beyond length 1, the bit is uniform."""
        return one_uniform_bit(length)
