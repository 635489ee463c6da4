"""Bucket sort: the input in ascending order.

An example of length 6:

    inputs   4 0 2 0 3 2
    targets  0 0 2 2 3 4
"""

import dataclasses

import tensorflow as tf

from datasets.floors import likely_sorted_symbol, most_frequent_symbol
from datasets.tasks.base import Task, draw_symbols


@dataclasses.dataclass(frozen=True)
class BucketSort(Task):
    """Uniform symbols 0 to 4 in ascending order.

    The answer depends only on how often each symbol occurs in the input, so a
    model needs no input positions, but it does need output positions. In a
    long string, the symbol at an output position hardly varies between
    inputs, so `position_only_accuracy` approaches 1.

    Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
    """

    input_vocabulary_size: int = 5
    output_vocabulary_size: int = 5
    level: str = "context_sensitive"
    random_accuracy: float = 0.2

    def output_length(self, length):
        """One output for each input token."""
        return length

    def draw(self, seed, batch_size, length):
        """Draws independent uniform symbols."""
        symbols = draw_symbols(seed, batch_size, length, 5)
        return symbols, tf.sort(symbols, axis=1)

    def floor_accuracy(self, length):
        """Accuracy of the most frequent input symbol at every position."""
        return most_frequent_symbol(length)

    def position_only_accuracy(self, length):
        """Accuracy of the most likely symbol at each position."""
        return likely_sorted_symbol(length)
