"""Even pairs: is the number of unequal adjacent bits even?

An example of length 5, with the unequal pairs 01, 10 and 01:

    inputs   0 1 1 0 1
    targets  1
"""

import dataclasses

from jax import numpy as jnp

from datasets.floors import one_uniform_bit, whether_ends_differ
from datasets.jax_tasks.base import JaxTask, draw_symbols


@dataclasses.dataclass(frozen=True)
class EvenPairs(JaxTask):
    """The task of `datasets.tasks.even_pairs`, drawn by JAX."""

    input_vocabulary_size: int = 2
    output_vocabulary_size: int = 2

    def draw(self, key, batch_size, width, length):
        """Draws independent uniform bits."""
        bits = draw_symbols(key, batch_size, width, 2)
        # The number is odd exactly if the first and the last bit differ.
        last = jnp.take(bits, jnp.asarray([length - 1]), axis=1)
        differ = (bits[:, :1] != last).astype("int32")
        return bits, jnp.broadcast_to(differ, bits.shape)

    def floor_accuracy(self, length):
        """Accuracy of the more likely answer, given the number of ones."""
        return whether_ends_differ(length)

    def position_only_accuracy(self, length):
        """Accuracy of a constant: two bits are equal with probability 1/2."""
        return one_uniform_bit(length)
