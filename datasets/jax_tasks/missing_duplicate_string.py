"""Missing duplicate string: which bit of a doubled string was hidden?

An example of length 7: the string 0 1 1 and its copy, with the fifth bit hidden
by a 2, and a 3 to fill the odd length:

    inputs   0 1 1 0 2 1 3
    targets  1
"""

import dataclasses

import jax
from jax import numpy as jnp

from datasets.floors import hidden_bit_by_threshold, one_uniform_bit
from datasets.jax_tasks.base import JaxTask, draw_symbols


@dataclasses.dataclass(frozen=True)
class MissingDuplicateString(JaxTask):
    """The task of `datasets.tasks.missing_duplicate_string`, drawn by JAX."""

    input_vocabulary_size: int = 4
    output_vocabulary_size: int = 2

    def draw(self, key, batch_size, width, length):
        """Draws uniform bits and the place of the placeholder."""
        bit_key, place_key = jax.random.split(key)
        # At length 1, which has no room for a copy, half is 1 as well.
        half = jnp.maximum(length // 2, 1)
        columns = jnp.arange(width)
        bits = draw_symbols(bit_key, batch_size, width, 2)
        doubled = jnp.take(bits, columns % half, axis=1)
        place = draw_symbols(place_key, batch_size, 1, 2 * half)
        hidden = jnp.take_along_axis(doubled, place, axis=1)
        inputs = jnp.where(columns == place, 2, doubled)
        inputs = jnp.where(columns < 2 * half, inputs, 3)
        alone = jnp.equal(length, 1)
        targets = jnp.broadcast_to(hidden, bits.shape)
        return jnp.where(alone, 1, inputs), jnp.where(alone, 1, targets)

    def floor_accuracy(self, length):
        """Accuracy of whether the visible ones reach the best threshold."""
        return hidden_bit_by_threshold(length)

    def position_only_accuracy(self, length):
        """Accuracy of a constant: beyond length 1, the bit is uniform."""
        return one_uniform_bit(length)
