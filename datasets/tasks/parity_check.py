"""Parity check: is the number of ones even?

An example of length 5, with three ones:

    inputs   0 1 1 0 1
    targets  1
"""

import dataclasses

import tensorflow as tf

from datasets.tasks.base import Task, draw_symbols


@dataclasses.dataclass(frozen=True)
class ParityCheck(Task):
    """Number of ones modulo 2 in a string of uniform bits.

    The order of the bits does not matter, so a model can solve the task
    without positions. The best simple rule is therefore a constant: a better
    rule has to count the ones modulo 2, which is the solution.

    This is also the parity of the suite of C-RASP (Huang et al., 2025,
    https://arxiv.org/abs/2410.02140), which draws the number of ones uniformly
    instead. No program of C-RASP computes it, so Transformers are predicted to
    fail. Published exact match at lengths 51 to 100 and 101 to 150, after
    training up to 50: 0.83 and 0.62 with a table of positions.

    Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
    """

    input_vocabulary_size: int = 2
    output_vocabulary_size: int = 2
    level: str = "regular"
    random_accuracy: float = 0.5

    def draw(self, seed, batch_size, length):
        """Draws independent uniform bits."""
        bits = draw_symbols(seed, batch_size, length, 2)
        return bits, tf.reduce_sum(bits, axis=1, keepdims=True) % 2

    def floor_accuracy(self, length):
        """Accuracy of any constant: both answers are equally likely."""
        del length
        return 0.5

    def position_only_accuracy(self, length):
        """The same as `floor_accuracy`."""
        return self.floor_accuracy(length)
