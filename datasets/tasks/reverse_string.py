"""Reverse string: the input, last bit first.

An example of length 5:

    inputs   0 0 1 0 1
    targets  1 0 1 0 0
"""

import dataclasses

from datasets.tasks.base import RearrangedBits


@dataclasses.dataclass(frozen=True)
class ReverseString(RearrangedBits):
    """A string of uniform bits in reverse order.

    Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
    """

    input_vocabulary_size: int = 2
    output_vocabulary_size: int = 2
    level: str = "deterministic_context_free"
    random_accuracy: float = 0.5

    def output_length(self, length):
        """One output for each input token."""
        return length

    def rearrange(self, bits):
        """Reverses the bits."""
        return bits[:, ::-1]
