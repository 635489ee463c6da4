"""Square root: the root of a binary number, rounded down.

An example of length 6, the root of 41, highest bit first:

    inputs   1 0 1 0 0 1
    targets  1 1 0
"""

import dataclasses
import math

import tensorflow as tf

from datasets.tasks.base import Task
from datasets.tasks.binary_numbers import compute_square_root, draw_numbers


@dataclasses.dataclass(frozen=True)
class ComputeSqrt(Task):
    """The square root of a number from 1 to `2**length - 1`, rounded down.

    Numbers are uniform. They are written highest bit first, with leading
    zeros. The root has half as many bits, rounded up.

    Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
    """

    input_vocabulary_size: int = 2
    output_vocabulary_size: int = 2
    level: str = "context_sensitive"
    random_accuracy: float = 0.5

    def output_length(self, length):
        """Half of the length, rounded up."""
        return (length + 1) // 2

    def draw(self, seed, batch_size, length):
        """Draws a number and computes its root."""
        number = draw_numbers(seed, batch_size, length, length)
        root = compute_square_root(number)
        return tf.reverse(number, [1]), tf.reverse(root, [1])

    def floor_accuracy(self, length):
        """Accuracy of the more likely bit, the same at every position.

        A rule on the number of ones is slightly better: by 0.02 at length 8,
        and by 0.001 at length 40.
        """
        ones = self._compute_probabilities(length)
        mean = sum(ones) / len(ones)
        return max(mean, 1 - mean)

    def position_only_accuracy(self, length):
        """Accuracy of the more likely bit at each position."""
        ones = self._compute_probabilities(length)
        return sum(max(one, 1 - one) for one in ones) / len(ones)

    def _compute_probabilities(self, length):
        """Computes the probability of a 1 at each bit of the root.

        Args:
            length: int, at least 1. Number of bits of the number.

        Returns:
            List of float, lowest bit first.
        """
        numbers = 2**length - 1
        last = math.isqrt(numbers)
        probabilities = []
        for bit in range(self.output_length(length)):
            run = 2**bit
            # This bit of the roots 0, 1, 2, ... alternates between runs of
            # zeros and runs of ones. r**2 numbers have roots below r, so the
            # run of ones after 2 i + 1 runs has (4 i + 3) run**2 numbers.
            pairs, rest = divmod(last, 2 * run)
            ones = run**2 * pairs * (2 * pairs + 1)
            if rest >= run:
                # The last run ends early, at the largest number.
                ones += numbers + 1 - (last - rest + run) ** 2
            probabilities.append(ones / numbers)
        return probabilities
