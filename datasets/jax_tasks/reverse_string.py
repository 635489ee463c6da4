"""Reverse string: the input, last bit first.

An example of length 5:

    inputs   0 0 1 0 1
    targets  1 0 1 0 0
"""

import dataclasses

from jax import numpy as jnp

from datasets.floors import more_frequent_bit
from datasets.jax_tasks.base import JaxTask, draw_symbols


@dataclasses.dataclass(frozen=True)
class ReverseString(JaxTask):
    """The task of `datasets.tasks.reverse_string`, drawn by JAX."""

    input_vocabulary_size: int = 2
    output_vocabulary_size: int = 2

    def output_length(self, length):
        """One output for each input token."""
        return length

    def draw(self, key, batch_size, width, length):
        """Draws independent uniform bits."""
        bits = draw_symbols(key, batch_size, width, 2)
        # The first `length` columns of all, last one first.
        return bits, jnp.roll(bits[:, ::-1], length - width, axis=1)

    def floor_accuracy(self, length):
        """Accuracy of the more frequent bit of the input at every position."""
        return more_frequent_bit(length)

    def position_only_accuracy(self, length):
        """Accuracy of any constant: bits are uniform at every position."""
        del length
        return 0.5
