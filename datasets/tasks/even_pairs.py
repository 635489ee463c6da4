"""Even pairs: is the number of places where neighbours differ even?

An example of length 5, with the unequal pairs 01, 10 and 01:

    inputs   0 1 1 0 1
    targets  1
"""

import dataclasses

import numpy as np
import tensorflow as tf

from datasets.tasks.base import (
    Task,
    compute_binomial_probabilities,
    draw_symbols,
)


@dataclasses.dataclass(frozen=True)
class EvenPairs(Task):
    """Parity of the number of unequal neighbours in a string of fair bits.

    The answer is 0 for an even number and 1 for an odd one. The string
    changes its bit an odd number of times exactly if it ends on another bit
    than it began with, so the first and the last bit settle it. A string of
    one bit has no pairs: its answer is always 0.

    Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
    """

    input_vocabulary_size: int = 2
    output_vocabulary_size: int = 2
    level: str = "regular"
    random_accuracy: float = 0.5

    def draw(self, seed, batch_size, length):
        """Draws independent fair bits."""
        bits = draw_symbols(seed, batch_size, length, 2)
        differ = tf.not_equal(bits[:, :1], bits[:, -1:])
        return bits, tf.cast(differ, tf.int32)

    def floor_accuracy(self, length):
        """The likelier answer given how many ones the string has.

        The rarer a symbol is, the likelier both ends hold the other one.
        """
        if length == 1:
            return 1.0
        ones = np.arange(length + 1)
        zeros = length - ones
        ends_agree = ones * (ones - 1) + zeros * (zeros - 1)
        ends_agree = ends_agree / (length * (length - 1))
        best = np.maximum(ends_agree, 1 - ends_agree)
        return float(compute_binomial_probabilities(length, 0.5) @ best)

    def position_only_accuracy(self, length):
        """A constant: two different bits agree half of the time."""
        return 1.0 if length == 1 else 0.5
