"""Cycle navigation: where on a ring of five places does a walk end?

An example of length 5, with the moves +1, +1, 0, -1, +1 from place 0:

    inputs   2 2 1 0 2
    targets  2
"""

import dataclasses

import numpy as np
import tensorflow as tf

from datasets.tasks.base import Task, draw_symbols


@dataclasses.dataclass(frozen=True)
class CycleNavigation(Task):
    """Last place of a walk from place 0 on a ring of five places.

    Tokens 0, 1 and 2, each equally likely, are moves by -1, 0 and +1. The
    answer is the sum of the moves modulo 5, a number from 0 to 4.

    The order of the moves does not matter, so a model can solve the task
    without positions. The best simple rule is therefore a constant: a better
    rule has to count the moves modulo 5, which is the solution.

    Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
    """

    input_vocabulary_size: int = 3
    output_vocabulary_size: int = 5
    level: str = "regular"
    random_accuracy: float = 0.2

    def draw(self, seed, batch_size, length):
        """Draws independent uniform moves."""
        tokens = draw_symbols(seed, batch_size, length, 3)
        place = tf.reduce_sum(tokens - 1, axis=1, keepdims=True) % 5
        return tokens, place

    def floor_accuracy(self, length):
        """Probability of the most likely last place."""
        stay = np.eye(5)
        move = (np.roll(stay, -1, axis=0) + stay + np.roll(stay, 1, axis=0)) / 3
        return float(np.linalg.matrix_power(move, length)[0].max())

    def position_only_accuracy(self, length):
        """The same as `floor_accuracy`."""
        return self.floor_accuracy(length)
