"""Even pairs: is the number of unequal adjacent bits even?

An example of length 5, with the unequal pairs 01, 10 and 01:

    inputs   0 1 1 0 1
    targets  1
"""

import dataclasses

import tensorflow as tf

from datasets.floors import one_uniform_bit, whether_ends_differ
from datasets.tasks.base import Task, draw_symbols


@dataclasses.dataclass(frozen=True)
class EvenPairs(Task):
    """Parity of the number of unequal adjacent bits in a string.

    Bits are uniform. The answer is 0 for an even number and 1 for an odd one.
    The number is odd exactly if the first and the last bit differ. A string of
    one bit has no pairs, so its answer is always 0.

    Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
    """

    input_vocabulary_size: int = 2
    output_vocabulary_size: int = 2
    level: str = "regular"
    random_accuracy: float = 0.5

    def draw(self, seed, batch_size, length):
        """Draws independent uniform bits."""
        bits = draw_symbols(seed, batch_size, length, 2)
        differ = tf.not_equal(bits[:, :1], bits[:, -1:])
        return bits, tf.cast(differ, tf.int32)

    def floor_accuracy(self, length):
        """Accuracy of the more likely answer, given the number of ones."""
        return whether_ends_differ(length)

    def position_only_accuracy(self, length):
        """Accuracy of a constant: two bits are equal with probability 1/2."""
        return one_uniform_bit(length)
