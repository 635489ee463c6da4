"""Bucket sort: the input in ascending order.

An example of length 6:

    inputs   4 0 2 0 3 2
    targets  0 0 2 2 3 4
"""

import dataclasses

from jax import numpy as jnp

from datasets.floors import likely_sorted_symbol, most_frequent_symbol
from datasets.jax_tasks.base import JaxTask, draw_symbols


@dataclasses.dataclass(frozen=True)
class BucketSort(JaxTask):
    """The task of `datasets.tasks.bucket_sort`, drawn by JAX."""

    input_vocabulary_size: int = 5
    output_vocabulary_size: int = 5

    def output_length(self, length):
        """One output for each input token."""
        return length

    def draw(self, key, batch_size, width, length):
        """Draws independent uniform symbols."""
        symbols = draw_symbols(key, batch_size, width, 5)
        used = jnp.arange(width) < length
        # Unused entries are sorted to the end.
        return symbols, jnp.sort(jnp.where(used, symbols, 5), axis=1)

    def floor_accuracy(self, length):
        """Accuracy of the most frequent input symbol at every position."""
        return most_frequent_symbol(length)

    def position_only_accuracy(self, length):
        """Accuracy of the most likely symbol at each position."""
        return likely_sorted_symbol(length)
