"""Odds first: the bits at odd indices, then those at even indices.

An example of length 5, indices counted from 0:

    inputs   0 1 0 1 1
    targets  1 1 0 0 1
"""

import dataclasses

import tensorflow as tf

from datasets.tasks.base import RearrangedBits


@dataclasses.dataclass(frozen=True)
class OddsFirst(RearrangedBits):
    """A string of uniform bits with those at odd indices moved to the front.

    Indices count from 0. Each half keeps its order.

    Differs from the published description, which puts even indices first. The
    published code, and therefore the published results, put odd indices first.

    Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
    """

    input_vocabulary_size: int = 2
    output_vocabulary_size: int = 2
    level: str = "context_sensitive"
    random_accuracy: float = 0.5

    def output_length(self, length):
        """One output for each input token."""
        return length

    def rearrange(self, bits):
        """Returns the bits at odd indices, then those at even indices."""
        return tf.concat([bits[:, 1::2], bits[:, 0::2]], axis=1)
