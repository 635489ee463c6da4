"""Square root: the root of a binary number, rounded down.

An example of length 6, the root of 41, the highest bit first:

    inputs   1 0 1 0 0 1
    targets  1 1 0
"""

import dataclasses
import math

import tensorflow as tf

from datasets.tasks.base import Task
from datasets.tasks.binary_numbers import draw_numbers, compute_square_root


@dataclasses.dataclass(frozen=True)
class ComputeSqrt(Task):
    """The square root of a number from 1 to `2**length - 1`, rounded down.

    Numbers are uniform and written with the highest bit first, zeros before
    it; the root has half as many bits, rounded up.

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
        """The likelier bit, the same at every position.

        The number of ones tells a little more: .02 at length 8, .001 at 40.
        """
        ones = self._compute_probabilities(length)
        mean = sum(ones) / len(ones)
        return max(mean, 1 - mean)

    def position_only_accuracy(self, length):
        """The likelier bit at each position."""
        ones = self._compute_probabilities(length)
        return sum(max(one, 1 - one) for one in ones) / len(ones)

    def _compute_probabilities(self, length):
        """How probable a 1 is at each bit of the root, the lowest first."""
        numbers = 2**length - 1
        last = math.isqrt(numbers)
        probabilities = []
        for bit in range(self.output_length(length)):
            block = 2**bit
            # Roots come in blocks, zeros and ones in turn. Root r belongs to
            # 2 r + 1 numbers, so those with roots below r are r**2, and those
            # of the block of ones after 2 i + 1 blocks are 4 i + 3 times
            # block**2.
            pairs, rest = divmod(last, 2 * block)
            ones = block**2 * pairs * (2 * pairs + 1)
            if rest >= block:
                # The last block is cut off where the numbers end.
                ones += numbers + 1 - (last - rest + block) ** 2
            probabilities.append(ones / numbers)
        return probabilities
