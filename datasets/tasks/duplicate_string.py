"""Duplicate string: the input twice.

An example of length 3:

    inputs   0 1 1
    targets  0 1 1 0 1 1
"""

import dataclasses

import tensorflow as tf

from datasets.tasks.base import RearrangedBits


@dataclasses.dataclass(frozen=True)
class DuplicateString(RearrangedBits):
    """A string of uniform bits, followed by a copy of it.

    Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
    """

    input_vocabulary_size: int = 2
    output_vocabulary_size: int = 2
    level: str = "context_sensitive"
    random_accuracy: float = 0.5

    def output_length(self, length):
        """Two outputs for each input token."""
        return 2 * length

    def rearrange(self, bits):
        """Returns the string and its copy."""
        return tf.concat([bits, bits], axis=1)
